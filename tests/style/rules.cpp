#include "rules.hpp"

#include <algorithm>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace swaplab::style {
namespace {

bool starts_with_any(std::string_view text, const std::vector<std::string_view>& prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool ends_with_any(std::string_view text, const std::vector<std::string_view>& suffixes) {
    return std::any_of(suffixes.begin(), suffixes.end(),
                       [&](std::string_view suffix) { return text.ends_with(suffix); });
}

bool is_header(std::string_view path) {
    return ends_with_any(path, {".hpp", ".cuh"});
}

bool is_source(std::string_view path) {
    return is_header(path) || ends_with_any(path, {".cpp", ".cu"});
}

/// Calls `complain_about(line)` for each line; what it returns, unless empty, becomes a complaint.
template <class F>
Complaints each_line(const File& file, F complain_about) {
    Complaints complaints;
    std::istringstream in(file.text);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        const std::string complaint = complain_about(line);
        if (!complaint.empty()) {
            complaints.push_back(file.path + ":" + std::to_string(number) + ": " + complaint);
        }
    }
    return complaints;
}

/// Calls `complain_about(what)` with what each #include of a source file names.
template <class F>
Complaints each_include(const File& file, F complain_about) {
    if (!is_source(file.path)) {
        return {};
    }
    static const std::regex include(R"re(^\s*#\s*include\s*["<]([^">]+)[">])re");
    return each_line(file, [&](const std::string& line) -> std::string {
        std::smatch match;
        return std::regex_search(line, match, include) ? complain_about(match[1].str()) : "";
    });
}

/// Complains about every match of `pattern` in a source file outside `allowed` and the files that
/// spell the rules.
Complaints ban(const File& file, const std::regex& pattern, const std::string& instead,
               const std::vector<std::string_view>& allowed = {}) {
    if (!is_source(file.path) || starts_with_any(file.path, allowed) ||
        file.path.starts_with("tests/style/rules")) {
        return {};
    }
    return each_line(file, [&](const std::string& line) -> std::string {
        std::smatch match;
        return std::regex_search(line, match, pattern) ? match.str() + ": use " + instead : "";
    });
}

/// 0 sim, 1 optim, 2 harness, 3 whatever may see all of them.
int layer_of(std::string_view path) {
    const std::vector<std::string_view> layers{"sim/", "optim/", "harness/"};
    const auto found = std::find_if(layers.begin(), layers.end(),
                                    [&](std::string_view dir) { return path.starts_with(dir); });
    return static_cast<int>(found - layers.begin());
}

Complaints layering(const File& file) {
    return each_include(file, [&](std::string_view included) -> std::string {
        if (included.starts_with("properties/")) {
            return "nothing may use properties";
        }
        const int own = layer_of(file.path);
        if (own < 3 && included.starts_with("support/")) {
            return "tests/support is for tests and properties";
        }
        const std::string_view prefix = "swaplab/";
        if (included.starts_with(prefix) && layer_of(included.substr(prefix.size())) > own) {
            return std::string(included) + " is to the right of this file: sim <- optim <- harness";
        }
        return {};
    });
}

Complaints checkpoint_stands_alone(const File& file) {
    if (!file.path.starts_with("harness/checkpoint/")) {
        return {};
    }
    return each_include(file, [](const std::string& included) -> std::string {
        static const std::regex foreign(
            "^(swaplab/harness/(?!checkpoint|dcp_|storage|tensor_reader).*|(CLI|toml\\+\\+)/.*"
            "|(cli|inspect|report|scenario|specimens|train)/.*)");
        return std::regex_search(included, foreign)
                   ? included + ": harness/checkpoint is linked alone by engines"
                   : "";
    });
}

Complaints cuda_headers(const File& file) {
    if (file.path.find("/cuda/") != std::string::npos ||
        ends_with_any(file.path, {".cu", ".cuh"})) {
        return {};
    }
    return each_include(file, [](const std::string& included) -> std::string {
        return starts_with_any(included, {"cuda", "cooperative_groups", "nvtx"})
                   ? included + " belongs into a folder cuda/ or a .cu file"
                   : "";
    });
}

Complaints boost_headers(const File& file) {
    if (file.path.starts_with("sim/world/")) {
        return {};
    }
    const bool is_test = file.path.starts_with("tests/");
    return each_include(file, [=](const std::string& included) -> std::string {
        const bool is_oracle = is_test && included.starts_with("boost/graph/");
        return included.starts_with("boost/") && !is_oracle ? included + " belongs into sim/world/"
                                                            : "";
    });
}

Complaints test_libraries(const File& file) {
    if (starts_with_any(file.path, {"tests/", "properties/", "harness/bench/"})) {
        return {};
    }
    return each_include(file, [](const std::string& included) -> std::string {
        return starts_with_any(included, {"gtest/", "gmock/", "rapidcheck", "benchmark/"})
                   ? included + " belongs into tests, properties or harness/bench"
                   : "";
    });
}

Complaints pragma_once_first(const File& file) {
    if (!is_header(file.path) || file.text.starts_with("#pragma once\n")) {
        return {};
    }
    return {file.path + ":1: a header begins with #pragma once"};
}

Complaints columns(const File& file) {
    if (!is_source(file.path)) {
        return {};
    }
    return each_line(file, [](const std::string& line) -> std::string {
        return line.size() > 100 ? std::to_string(line.size()) + " columns, at most 100" : "";
    });
}

Complaints ascii(const File& file) {
    return each_line(file, [](const std::string& line) -> std::string {
        const bool plain = std::all_of(line.begin(), line.end(),
                                       [](char c) { return c == '\t' || (c >= ' ' && c <= '~'); });
        return plain ? "" : "a character outside printable ASCII";
    });
}

Complaints file_length(const File& file) {
    const auto lines = std::count(file.text.begin(), file.text.end(), '\n');
    if (!is_source(file.path) || lines <= 600) {
        return {};
    }
    return {file.path + ": " + std::to_string(lines) + " lines, at most 600"};
}

Complaints file_size(const File& file) {
    constexpr std::size_t bytes_max = std::size_t{256} << 10U;
    if (file.text.size() <= bytes_max) {
        return {};
    }
    return {file.path + ": more than 256 KiB outside a data folder"};
}

Complaints randomness(const File& file) {
    static const std::regex pattern(R"re(\b(random_device|mt19937|srand)\b|\bstd::rand\b)re");
    return ban(file, pattern, "sim::Rng");
}

Complaints wall_clock(const File& file) {
    static const std::regex pattern(R"re(\bsystem_clock\b|\bsleep_(for|until)\b|\bstd::time\()re");
    return ban(file, pattern, "no clock at all, or a deadline of the world");
}

Complaints monotonic_clock(const File& file) {
    static const std::regex pattern(R"re(\b(steady|high_resolution)_clock\b)re");
    return starts_with_any(file.path, {"sim/", "optim/", "harness/checkpoint/"})
               ? ban(file, pattern, "no clock: results must not depend on time",
                     {"sim/world/", "sim/mpi/"})
               : Complaints{};
}

Complaints console_output(const File& file) {
    static const std::regex pattern(R"re(\bstd::(cout|cerr|clog)\b)re");
    return ban(file, pattern, "a value returned to harness/cli",
               {"harness/cli/", "harness/nightly/main.cpp", "properties/cuda/main.cpp", "tests/"});
}

Complaints leftovers(const File& file) {
    // Spelled in two parts: this file is checked too.
    static const std::regex pattern(
        "\\b(FIX"
        "ME|TO"
        "DO|XX"
        "X|HA"
        "CK)\\b");
    return each_line(file, [](const std::string& line) -> std::string {
        std::smatch match;
        return std::regex_search(line, match, pattern) ? match.str() + ": finish it" : "";
    });
}

Complaints machine_paths(const File& file) {
    static const std::regex pattern(
        "(^|[^A-Za-z0-9_.$}-])/(wor"
        "k|roo"
        "t|hom"
        "e|User"
        "s)/|[a-z]\\.(debian|pypi)\\.or"
        "g");
    return each_line(file, [](const std::string& line) -> std::string {
        std::smatch match;
        return std::regex_search(line, match, pattern) ? match.str() + ": names one machine" : "";
    });
}

Complaints properties_throw(const File& file) {
    static const std::regex pattern(R"re(\b(EXPECT|ASSERT)_[A-Z]+)re");
    return file.path.ends_with("_properties.cpp") ? ban(file, pattern, "PROP_*, which shrinks")
                                                  : Complaints{};
}

}  // namespace

bool is_written_by_hand(std::string_view path) {
    return !starts_with_any(path, {"tests/data/", "scenarios/data/"});
}

const std::vector<Rule>& rules() {
    static const std::vector<Rule> all{
        {"layering", layering},
        {"checkpoint stands alone", checkpoint_stands_alone},
        {"CUDA headers", cuda_headers},
        {"Boost headers", boost_headers},
        {"test libraries", test_libraries},
        {"pragma once first", pragma_once_first},
        {"columns", columns},
        {"ASCII", ascii},
        {"file length", file_length},
        {"file size", file_size},
        {"randomness", randomness},
        {"wall clock", wall_clock},
        {"monotonic clock", monotonic_clock},
        {"console output", console_output},
        {"leftovers", leftovers},
        {"machine paths", machine_paths},
        {"properties throw", properties_throw},
    };
    return all;
}

const Rule& rule(std::string_view name) {
    const auto found = std::find_if(rules().begin(), rules().end(),
                                    [&](const Rule& one) { return one.name == name; });
    if (found == rules().end()) {
        throw std::invalid_argument("no rule \"" + std::string(name) + "\"");
    }
    return *found;
}

}  // namespace swaplab::style
