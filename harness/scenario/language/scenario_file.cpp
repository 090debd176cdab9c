#include "scenario/language/scenario_file.hpp"

#include "scenario/language/build.hpp"
#include "scenario/language/patch.hpp"
#include "scenario/language/rounds.hpp"
#include "scenario/language/vocabulary.hpp"

#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

constexpr std::size_t max_cells = 64;
constexpr std::size_t max_runs = 1024;
constexpr std::uintmax_t max_file_bytes = std::uintmax_t{1} << 20U;
constexpr std::uintmax_t max_checkpoint_bytes = std::uintmax_t{1} << 30U;

struct Axis {
    NodePath path;  ///< value is unused
    std::vector<Node> values;
    bool named = true;  ///< part of the names of runs
    bool read = false;  ///< some case tells another story for another value
};

std::string id_of(const std::string& path) {
    const std::filesystem::path file(path);
    const std::string family = file.parent_path().filename().string();
    const std::string stem = file.stem().string();
    return family.empty() || family == "." ? stem : family + "/" + stem;
}

void replace_axis(std::vector<Axis>& axes, const std::string& path, Node value) {
    Node one = make_table({});
    one.set(path, value);
    for (Axis& axis : axes) {
        if (axis.path.text() == path) {
            axis.values = {std::move(value)};
            return;
        }
    }
    axes.push_back({leaves(one).front(), {std::move(value)}, false, false});
}

std::vector<Axis> read_axes(const Node& document, const Overrides& overrides,
                            Diagnostics& diagnostics) {
    std::vector<Axis> axes;
    const Node* matrix = document.find("matrix");
    if (matrix != nullptr && !matrix->is(Kind::table)) {
        diagnostics.error("wrong-type", matrix->at, "matrix = " + show(*matrix),
                          "expected { PATH = [values] }");
        return axes;
    }
    for (const NodePath& path : matrix != nullptr ? leaves(*matrix) : std::vector<NodePath>{}) {
        if (!path.value.is(Kind::list) || path.value.items.empty()) {
            diagnostics.error("wrong-type", path.at,
                              fmt::format("{} = {}", path.text(), show(path.value)),
                              "an axis of the matrix is a list of values");
            continue;
        }
        axes.push_back({path, path.value.items, true, false});
    }
    if (overrides.seed) {
        replace_axis(axes, "scenario.seed", make_integer(*overrides.seed, {}));
    }
    if (overrides.world) {
        replace_axis(axes, "world.size", make_integer(*overrides.world, {}));
    }
    if (overrides.world_kind) {
        replace_axis(axes, "world.kind", make_text(*overrides.world_kind, {}));
    }
    for (const auto& [path, value] : overrides.set) {
        replace_axis(axes, path, read_toml_value(value));
    }
    return axes;
}

std::vector<std::vector<CellValue>> cells_of(const std::vector<Axis>& axes) {
    std::vector<std::vector<CellValue>> cells{{}};
    for (const Axis& axis : axes) {
        std::vector<std::vector<CellValue>> next;
        for (const auto& cell : cells) {
            for (const Node& value : axis.values) {
                next.push_back(cell);
                next.back().push_back({axis.path.text(), value});
            }
        }
        cells = std::move(next);
    }
    return cells;
}

/// Whether the cell has the values that a case's `where` asks for.
bool fits(const Node& which, const std::vector<CellValue>& cell) {
    const Node* where = which.find("where");
    for (const NodePath& wanted : where != nullptr ? leaves(*where) : std::vector<NodePath>{}) {
        const bool holds = std::any_of(cell.begin(), cell.end(), [&](const CellValue& value) {
            return value.path == wanted.text() && value.value == wanted.value;
        });
        if (!holds) {
            return false;
        }
    }
    return true;
}

class FileBuilder {
  public:
    FileBuilder(ScenarioFile& file, const Overrides& overrides)
        : file_(file),
          overridden_(overrides.seed || overrides.world || overrides.world_kind ||
                      !overrides.set.empty()),
          axes_(read_axes(file.document, overrides, file.diagnostics)) {}

    void build() {
        const Node* cases = file_.document.find("case");
        if (cases == nullptr || cases->items.empty()) {
            file_.diagnostics.error(
                "cannot-fail", file_.document.at, "a file without case proves nothing",
                "add [[case]] optimizer = \"swap_adamw\", verdict = \"passes\"");
            return;
        }
        file_.cases = cases->items.size();
        for (const Axis& axis : axes_) {
            file_.cells = std::min(file_.cells * axis.values.size(), max_cells + 1);
        }
        if (file_.cells > max_cells) {
            file_.diagnostics.error("too-many-cells", file_.document.place_of("matrix"),
                                    "the matrix has more than 64 cells");
            return;
        }
        if (file_.cells * file_.cases > max_runs) {
            file_.diagnostics.error("too-many-cells", file_.document.place_of("case"),
                                    fmt::format("{} cases in {} cells are more than {} runs",
                                                file_.cases, file_.cells, max_runs));
            return;
        }
        const auto cells = cells_of(axes_);
        for (const Node& which : cases->items) {
            check_where(which, cells);
            const std::size_t first = file_.runs.size();
            for (const auto& cell : cells) {
                if (fits(which, cell)) {
                    add_run(which, cell);
                }
            }
            note_axes_read(first);
        }
        check_axes();
        name_apart();
        collect_unproven();
    }

  private:
    /// Marks the axes along which runs of one case, those from `first` on, tell different stories.
    void note_axes_read(std::size_t first) {
        for (std::size_t i = first; i < file_.runs.size(); ++i) {
            for (std::size_t j = i + 1; j < file_.runs.size(); ++j) {
                const Run& a = file_.runs[i];
                const Run& b = file_.runs[j];
                std::vector<std::size_t> differing;
                for (std::size_t k = 0; k < axes_.size(); ++k) {
                    if (!(a.cell[k].value == b.cell[k].value)) {
                        differing.push_back(k);
                    }
                }
                if (differing.size() == 1 && !axes_[differing.front()].read) {
                    axes_[differing.front()].read =
                        !(a.start == b.start && a.steps == b.steps && a.finals == b.finals);
                }
            }
        }
    }

    /// An axis that changes no run shows nothing; one that some cases leave out cannot be judged.
    void check_axes() {
        for (const Axis& axis : axes_) {
            if (axis.named && axis.values.size() > 1 && !axis.read && !overridden_ &&
                !file_.diagnostics.has_errors()) {
                file_.diagnostics.error(
                    "unused", axis.path.at,
                    fmt::format("no case reads {}: its values change nothing", axis.path.text()),
                    "leave the axis out, or let a step use it");
            }
        }
    }

    void check_where(const Node& which, const std::vector<std::vector<CellValue>>& cells) {
        const Node* where = which.find("where");
        const bool fits_some =
            std::any_of(cells.begin(), cells.end(),
                        [&](const std::vector<CellValue>& cell) { return fits(which, cell); });
        if (where != nullptr && !fits_some && !overridden_) {
            file_.diagnostics.error(
                "unused", which.place_of("where"),
                fmt::format("where = {} fits no cell of the matrix", show(*where)));
        }
    }

    void add_run(const Node& which, const std::vector<CellValue>& cell) {
        Node document = file_.document;
        Diagnostics& diagnostics = file_.diagnostics;
        for (std::size_t i = 0; i < cell.size(); ++i) {
            NodePath patch = axes_[i].path;
            patch.value = cell[i].value;
            apply_patch(document, patch, diagnostics);
        }
        const Node* with = which.find("with");
        for (const NodePath& patch : with != nullptr ? leaves(*with) : std::vector<NodePath>{}) {
            apply_patch(document, patch, diagnostics);
        }
        normalise_steps(document);
        check_words(document, diagnostics);
        Run run = build_run(document, which, diagnostics);
        run.file = file_.path;
        run.name = fmt::format("{}[{}", file_.id, run.which.text);
        for (std::size_t i = 0; i < cell.size(); ++i) {
            run.cell.push_back(cell[i]);
            if (axes_[i].named) {
                run.name += fmt::format(", {}={}", cell[i].path, show_plain(cell[i].value));
            }
        }
        run.name += "]";
        file_.runs.push_back(std::move(run));
    }

    /// Cases with equal optimizer and cell get a number.
    void name_apart() {
        for (std::size_t i = 0; i < file_.runs.size(); ++i) {
            int twins = 1;
            const std::string name = file_.runs[i].name;
            for (std::size_t j = i + 1; j < file_.runs.size(); ++j) {
                if (file_.runs[j].name == name) {
                    file_.runs[j].name.insert(name.size() - 1, fmt::format(" #{}", ++twins));
                }
            }
        }
    }

    void collect_unproven() {
        std::vector<std::string> proven;
        for (const Run& run : file_.runs) {
            for (const FailSpec& fail : run.which.fails) {
                proven.push_back(fail.path);
            }
        }
        const auto look = [&](const std::vector<Expectation>& expectations) {
            for (const Expectation& expectation : expectations) {
                const std::pair entry(expectation.at, expectation.path);
                const bool seen = std::any_of(
                    file_.unproven.begin(), file_.unproven.end(),
                    [&](const auto& known) { return known.second == expectation.path; });
                const bool named =
                    std::find(proven.begin(), proven.end(), expectation.path) != proven.end();
                if (!expectation.by_default && !seen && !named) {
                    file_.unproven.push_back(entry);
                }
            }
        };
        for (const Run& run : file_.runs) {
            for (const Step& step : run.steps) {
                look(step.expect);
            }
            look(run.finals);
        }
    }

    ScenarioFile& file_;
    bool overridden_;
    std::vector<Axis> axes_;
};

namespace fs = std::filesystem;

/// Whether a save can have written `directory`: a scenario copies what it is given into memory, and
/// must not do that with any directory that happens to be there.
bool holds_checkpoint(const fs::path& directory) {
    std::error_code error;
    if (fs::is_regular_file(directory / ".metadata", error)) {
        return true;
    }
    for (fs::directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error)) {
        if (it->path().extension() == ".distcp" && it->is_regular_file(error)) {
            return true;
        }
    }
    return false;
}

std::uintmax_t bytes_of_files(const fs::path& directory) {
    std::uintmax_t bytes = 0;
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error)) {
        std::error_code vanished;
        const std::uintmax_t size = it->is_regular_file(vanished) ? it->file_size(vanished) : 0;
        bytes += vanished ? 0 : size;
    }
    return bytes;
}

void check_checkpoint(const CheckpointSpec& spec, const fs::path& directory,
                      Diagnostics& diagnostics) {
    const fs::path there = directory / spec.path;
    std::error_code error;
    if (!fs::is_directory(there, error)) {
        diagnostics.error("no-such-file", spec.at,
                          fmt::format("no directory \"{}\" beside this file", spec.path),
                          "paths are relative to the scenario file");
    } else if (!holds_checkpoint(there)) {
        diagnostics.error("no-checkpoint", spec.at,
                          fmt::format("\"{}\" is no checkpoint: neither .metadata nor a .distcp "
                                      "file is in it",
                                      spec.path),
                          "give the directory that a save wrote");
    } else if (const std::uintmax_t bytes = bytes_of_files(there); bytes > max_checkpoint_bytes) {
        diagnostics.error(
            "too-large", spec.at,
            fmt::format("\"{}\" holds {}: at most {} are copied", spec.path,
                        sim::format_bytes(bytes), sim::format_bytes(max_checkpoint_bytes)),
            "give a smaller checkpoint");
    }
}

/// Given files must be there before anything runs.
void check_files(ScenarioFile& file) {
    const fs::path directory = fs::path(file.path).parent_path();
    for (const Run& run : file.runs) {
        for (const CheckpointSpec& checkpoint : run.start.checkpoints) {
            check_checkpoint(checkpoint, directory, file.diagnostics);
        }
        for (const Step& step : run.steps) {
            const auto* train = std::get_if<TrainStep>(&step.action);
            std::error_code error;
            if (train != nullptr && !train->gradients.empty() &&
                !fs::is_regular_file(directory / train->gradients, error)) {
                file.diagnostics.error(
                    "no-such-file", step.at,
                    fmt::format("no file \"{}\" beside this file", train->gradients),
                    "paths are relative to the scenario file");
            }
        }
    }
    if (file.diagnostics.has_errors()) {
        file.runs.clear();
    }
}

}  // namespace

std::string ScenarioFile::said(std::string_view key) const {
    const Node* scenario = document.find("scenario");
    return scenario != nullptr ? text_or(*scenario, key, "") : "";
}

ScenarioFile parse_scenario(const std::string& path, std::string source,
                            const Overrides& overrides) {
    ScenarioFile file;
    file.path = path;
    file.id = id_of(path);
    file.source = std::move(source);
    auto document = read_toml(file.source, file.diagnostics);
    if (document) {
        file.document = std::move(*document);
        unroll_rounds(file.document);
        normalise_steps(file.document);
        check_words(file.document, file.diagnostics);
        if (!file.diagnostics.has_errors()) {
            FileBuilder(file, overrides).build();
        }
    }
    file.diagnostics.sort_by_place();
    if (file.diagnostics.has_errors()) {
        file.runs.clear();
    }
    return file;
}

ScenarioFile load_scenario(const std::string& path, const Overrides& overrides) {
    const auto fail = [&](const std::string& reason) {
        throw StorageError(fmt::format("cannot read scenario {}: {}", path, reason),
                           {{"operation", "open"}, {"file", path}, {"reason", reason}});
    };
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {
        fail(fs::exists(path, error) ? "it is not a regular file" : "no such file");
    }
    if (fs::file_size(path, error) > max_file_bytes) {
        ScenarioFile file;
        file.path = path;
        file.id = id_of(path);
        file.diagnostics.error("too-large", {1, 1},
                               "a scenario file has at most 256 KiB and 60 lines");
        return file;
    }
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        fail("it cannot be opened: check its permissions");
    }
    std::string source{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    ScenarioFile file = parse_scenario(path, std::move(source), overrides);
    check_files(file);
    return file;
}

}  // namespace swaplab::harness::scenario
