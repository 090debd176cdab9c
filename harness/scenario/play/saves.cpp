#include "scenario/play/saves.hpp"

#include "scenario/play/edit.hpp"

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/sim/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace swaplab::harness::scenario {
namespace {

using optim::Dict;
using optim::Value;

class SoloCommunicator : public sim::Communicator {
  public:
    int rank() const noexcept override { return 0; }
    int size() const noexcept override { return 1; }

  protected:
    void exchange(const sim::CollectiveCall& /*call*/, std::span<const int> /*members*/,
                  const sim::Outgoing& mine, sim::Incoming& theirs) override {
        theirs.expect(0, mine.bytes.size());
        if (!mine.bytes.empty()) {
            theirs.take(0, 0, mine.bytes);
        }
    }
    int free_channel() const noexcept override { return 0; }
    std::unique_ptr<Communicator> open_channel(int /*channel*/) override {
        return std::make_unique<SoloCommunicator>();
    }
};

std::vector<std::byte> read_file(Storage& storage, const std::string& path) {
    const auto file = storage.open(path);
    std::vector<std::byte> bytes(file->size());
    file->read(0, bytes);
    return bytes;
}

void write_file(Storage& storage, const std::string& path, std::span<const std::byte> bytes) {
    const auto file = storage.create(path);
    file->append(bytes);
    file->close();
}

/// The regular files of a checkpoint: DCP directories are flat.
void copy_files(Storage& from, const std::string& source, Storage& to, const std::string& target) {
    to.make_directory(target);
    for (const DirectoryEntry& entry : from.list(source)) {
        if (!entry.is_directory && !entry.is_special) {
            write_file(to, target + "/" + entry.name, read_file(from, source + "/" + entry.name));
        }
    }
}

std::int64_t volume(const optim::Box& box) {
    return optim::numel(box.sizes);
}

/// Elements in at least one of the boxes, by cutting the space at every border.
std::int64_t union_volume(const std::vector<optim::Box>& boxes) {
    if (boxes.empty()) {
        return 0;
    }
    const std::size_t dims = boxes.front().sizes.size();
    if (dims == 0) {
        return 1;
    }
    std::vector<optim::Shape> cuts(dims);
    for (std::size_t d = 0; d < dims; ++d) {
        for (const optim::Box& box : boxes) {
            cuts[d].push_back(box.offsets[d]);
            cuts[d].push_back(box.offsets[d] + box.sizes[d]);
        }
        std::sort(cuts[d].begin(), cuts[d].end());
        cuts[d].erase(std::unique(cuts[d].begin(), cuts[d].end()), cuts[d].end());
    }
    std::int64_t total = 0;
    std::vector<std::size_t> at(dims, 0);
    while (true) {
        optim::Box cell{optim::Shape(dims), optim::Shape(dims)};
        for (std::size_t d = 0; d < dims; ++d) {
            cell.offsets[d] = cuts[d][at[d]];
            cell.sizes[d] = cuts[d][at[d] + 1] - cuts[d][at[d]];
        }
        const bool covered = std::any_of(boxes.begin(), boxes.end(), [&](const auto& box) {
            return optim::intersect(box, cell).has_value();
        });
        total += covered ? volume(cell) : 0;
        std::size_t d = 0;
        while (d < dims && ++at[d] + 1 >= cuts[d].size()) {
            at[d++] = 0;
        }
        if (d == dims) {
            return total;
        }
    }
}

CoverRow cover_of(const Metadata& metadata, const std::string& param, const std::string& key,
                  std::int64_t elements) {
    CoverRow row{param, key, elements, elements, 0};
    const std::string name =
        key.empty() ? "model." + param : fmt::format("optimizer.state.{}.{}", param, key);
    const MetadataEntry* entry = metadata.find(name);
    const TensorEntry* tensor = entry != nullptr ? entry->tensor() : nullptr;
    if (tensor == nullptr) {
        row.missing = entry != nullptr && key == "step" ? 0 : elements;
        return row;
    }
    std::vector<optim::Box> boxes;
    std::int64_t stored = 0;
    for (const StoredChunk& chunk : tensor->chunks) {
        if (chunk.stored && volume(chunk.box) > 0) {
            boxes.push_back(chunk.box);
            stored += volume(chunk.box);
        }
    }
    const std::int64_t covered = union_volume(boxes);
    row.missing = std::max<std::int64_t>(elements - covered, 0);
    row.repeated = stored - covered;
    return row;
}

std::vector<FileRow> file_rows(Storage& storage, const std::string& directory,
                               const std::string& prefix) {
    std::vector<FileRow> rows;
    for (const DirectoryEntry& entry : storage.list(directory)) {
        const std::string path = directory + "/" + entry.name;
        if (entry.is_directory) {
            auto below = file_rows(storage, path, prefix + entry.name + "/");
            rows.insert(rows.end(), below.begin(), below.end());
        } else {
            rows.push_back(
                {prefix + entry.name, entry.bytes, sim::sha256_hex(read_file(storage, path))});
        }
    }
    return rows;
}

void edit_directory(Storage& storage, const EditStep& step) {
    Value tree = Checkpoint(storage, step.in).read_all();
    auto* root = tree.get_if<Dict>();
    Value* optimizer = root != nullptr ? root->find("optimizer") : nullptr;
    if (optimizer == nullptr) {
        throw sim::ArgumentError(fmt::format("edit: {} holds no optimizer state", step.in),
                                 {{"operation", "edit"}, {"file", step.in}});
    }
    optim::StateDict state_dict = optim::state_dict_from_value(*optimizer);
    edit_state_dict(state_dict, step, 0);
    *optimizer = optim::to_value(state_dict);
    SoloCommunicator solo;
    save_checkpoint(solo, storage, step.in, tree);
}

/// A place in a file of a checkpoint.
struct Place {
    std::string file;
    std::uint64_t item_offset = 0;
    std::uint64_t payload_offset = 0;            ///< of what flip and zero mean
    std::optional<std::uint64_t> payload_bytes;  ///< none: to the end of the file
};

Place place_of_item(Storage& storage, const DamageStep& step) {
    Checkpoint checkpoint(storage, step.in);
    const std::string key = step.key.empty()
                                ? "model." + step.param
                                : fmt::format("optimizer.state.{}.{}", step.param, step.key);
    const MetadataEntry* entry = checkpoint.metadata().find(key);
    const TensorEntry* tensor = entry != nullptr ? entry->tensor() : nullptr;
    for (const StoredChunk& chunk :
         tensor != nullptr ? tensor->chunks : std::vector<StoredChunk>{}) {
        if (chunk.stored) {
            const ItemHeader header = checkpoint.read_header(key, chunk);
            const std::uint64_t item = chunk.stored->offset_bytes;
            return {chunk.stored->relative_path, item, item + header.payload_offset_bytes,
                    header.payload_bytes};
        }
    }
    throw sim::ArgumentError(fmt::format("damage: {} stores no {}", step.in, key),
                             {{"operation", "damage"}, {"file", step.in}, {"key", key}});
}

/// One bit of the byte at `offset` of `bytes` turns over.
void flip_bit(std::span<std::byte> bytes, std::uint64_t offset, const DamageStep& step) {
    if (offset >= bytes.size()) {
        throw sim::ArgumentError(
            fmt::format("damage of {}: flip = {}: there are {} B", step.in, offset, bytes.size()),
            {{"operation", "damage"},
             {"file", step.in},
             {"expected", fmt::format("below {}", bytes.size())},
             {"found", std::to_string(offset)}});
    }
    bytes[offset] ^= std::byte{0x40};
}

}  // namespace

Saved& saved_as(Saves& saves, const std::string& name) {
    const auto found = saves.find(name);
    if (found == saves.end()) {
        throw sim::ArgumentError(fmt::format("nothing was saved as {}: its save failed", name),
                                 {{"operation", "look up"}, {"file", name}});
    }
    return found->second;
}

void import_checkpoint(const CheckpointSpec& checkpoint, const std::string& directory,
                       Storage& storage) {
    const auto real = make_posix_storage();
    const std::filesystem::path path = std::filesystem::path(directory) / checkpoint.path;
    copy_files(*real, path.lexically_normal().string(), storage, checkpoint.name);
}

void edit_saved(Saves& saves, Storage& storage, const EditStep& step, int rank) {
    if (step.via != Via::dcp) {
        edit_state_dict(saved_as(saves, step.in).dict.state, step, rank);
    } else if (rank == 0) {
        edit_directory(storage, step);
    }
}

void damage_directory(Storage& storage, const DamageStep& step) {
    const Place place =
        step.file.empty() ? place_of_item(storage, step) : Place{step.file, 0, 0, std::nullopt};
    const std::string path = step.in + "/" + place.file;
    if (step.remove) {
        storage.remove(path);
        return;
    }
    std::vector<std::byte> bytes =
        read_file(storage, step.copy_from.empty() ? path : step.copy_from + "/" + place.file);
    const std::span<std::byte> payload = std::span(bytes).subspan(
        place.payload_offset, place.payload_bytes.value_or(bytes.size() - place.payload_offset));
    if (step.flip_offset) {
        flip_bit(payload, *step.flip_offset, step);
    } else if (step.zero) {
        std::fill(payload.begin(), payload.end(), std::byte{0});
    } else if (step.extend_bytes) {
        bytes.resize(bytes.size() + *step.extend_bytes);
    } else if (step.truncate_bytes) {
        bytes.resize(std::min<std::size_t>(bytes.size(), place.item_offset + *step.truncate_bytes));
    }
    write_file(storage, path, bytes);
}

RankState dict_state(const SavedDict& dict) {
    RankState state;
    for (const auto& [name, tensor] : dict.params) {
        state.params[name] = capture_tensor(tensor);
    }
    const CapturedView view = capture_view(dict.state);
    state.views = {view, view};
    return state;
}

SavedContent directory_content(Storage& storage, const std::string& name, const Saved& saved,
                               const SetUp& set_up, bool lazy_state) {
    SavedContent out;
    try {
        out.files = file_rows(storage, name, "");
        Checkpoint checkpoint(storage, name);
        for (const GroupSpec& group : set_up.groups) {
            for (const std::string& param : group.params) {
                const std::int64_t elements = optim::numel(set_up.find(param)->shape);
                if (saved.has_model) {
                    out.cover.push_back(cover_of(checkpoint.metadata(), param, "", elements));
                }
                std::vector<std::string> keys{"exp_avg", "exp_avg_sq"};
                if (group.options.amsgrad) {
                    keys.emplace_back("max_exp_avg_sq");
                }
                const std::string step_key = fmt::format("optimizer.state.{}.step", param);
                if (!saved.has_optimizer ||
                    (lazy_state && checkpoint.metadata().find(step_key) == nullptr)) {
                    continue;
                }
                for (const std::string& key : keys) {
                    out.cover.push_back(cover_of(checkpoint.metadata(), param, key, elements));
                }
                out.cover.push_back(cover_of(checkpoint.metadata(), param, "step", 1));
            }
        }
        out.state = global_state(checkpoint.read_all());
    } catch (const sim::Error& error) {
        out.problem = error.message();
    }
    return out;
}

}  // namespace swaplab::harness::scenario
