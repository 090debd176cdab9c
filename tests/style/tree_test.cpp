#include "rules.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace swaplab::style {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

/// Paths of everything in the tree but the repository's own folders and build trees.
std::vector<std::string> paths_of_tree(const fs::path& root) {
    std::vector<std::string> paths;
    for (auto it = fs::recursive_directory_iterator(root); it != fs::end(it); ++it) {
        const std::string path = fs::relative(it->path(), root).generic_string();
        const bool skipped = path == ".git" || path == "build" || path == ".cache" ||
                             path == "compile_commands.json";
        if (skipped && it->is_directory()) {
            it.disable_recursion_pending();
        }
        if (!skipped && it->is_regular_file()) {
            paths.push_back(path);
        }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

/// Those of `paths` that `listing` does not hold as `before` + path + `after`.
std::vector<std::string> missing_from(const std::string& listing, const std::string& before,
                                      const std::vector<std::string>& paths,
                                      const std::string& after) {
    std::vector<std::string> missing;
    std::copy_if(paths.begin(), paths.end(), std::back_inserter(missing),
                 [&](const std::string& path) {
                     return listing.find(before + path + after) == std::string::npos;
                 });
    return missing;
}

std::vector<std::string> paths_ending(const std::vector<std::string>& suffixes) {
    std::vector<std::string> found;
    for (const std::string& path : paths_of_tree(SWAPLAB_SOURCE_DIR)) {
        const bool matches = std::any_of(suffixes.begin(), suffixes.end(),
                                         [&](const auto& end) { return path.ends_with(end); });
        if (matches) {
            found.push_back(path);
        }
    }
    return found;
}

TEST(SourceTree, KeepsEveryRule) {
    const fs::path root = SWAPLAB_SOURCE_DIR;
    std::size_t checked = 0;
    for (const std::string& path : paths_of_tree(root)) {
        if (!is_written_by_hand(path)) {
            continue;
        }
        const File file{path, read(root / path)};
        for (const Rule& rule : rules()) {
            EXPECT_THAT(rule.check(file), ::testing::IsEmpty()) << "rule: " << rule.name;
        }
        ++checked;
    }
    EXPECT_GT(checked, 50U);
}

TEST(SourceTree, AMissingPathIsNoticed) {
    EXPECT_THAT(missing_from("\"/src/a_test.cpp\"", "/", {"a_test.cpp", "b_test.cpp"}, "\""),
                ::testing::ElementsAre("b_test.cpp"));
}

TEST(SourceTree, EveryTestFileIsCompiled) {
    const std::string commands = read(fs::path(SWAPLAB_BINARY_DIR) / "compile_commands.json");
    auto files = paths_ending({"_test.cpp", "_test.cu", "_properties.cpp"});
    if (!SWAPLAB_HAS_CUDA) {
        std::erase_if(files, [](const std::string& path) {
            return path.ends_with(".cu") || path.find("/cuda/") != std::string::npos;
        });
    }
    EXPECT_THAT(files, ::testing::Contains("tests/style/tree_test.cpp"));
    EXPECT_THAT(missing_from(commands, "/", files, "\""), ::testing::IsEmpty());
}

TEST(SourceTree, EveryScenarioIsATest) {
    const std::string tests = read(fs::path(SWAPLAB_BINARY_DIR) / "tests/CTestTestfile.cmake");
    auto scenarios = paths_ending({".toml"});
    std::erase_if(scenarios,
                  [](const std::string& path) { return !path.starts_with("scenarios/"); });
    EXPECT_THAT(missing_from(tests, "add_test([=[", scenarios, "]=]"), ::testing::IsEmpty());
}

}  // namespace
}  // namespace swaplab::style
