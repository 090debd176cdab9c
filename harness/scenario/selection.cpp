#include "scenario/selection.hpp"

#include "scenario/diagnostic.hpp"

#include "swaplab/harness/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace swaplab::harness::scenario {
namespace {

namespace fs = std::filesystem;

std::string what_is_there(const fs::path& path) {
    fs::path parent = path.parent_path();
    std::error_code error;
    while (!parent.empty() && !fs::is_directory(parent, error)) {
        parent = parent.parent_path();
    }
    const fs::path look_in = parent.empty() ? fs::path(".") : parent;
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(look_in, error)) {
        if (entry.is_directory(error) || entry.path().extension() == ".toml") {
            names.push_back(entry.path().filename().string());
        }
    }
    std::sort(names.begin(), names.end());
    names.resize(std::min<std::size_t>(names.size(), 12));
    return names.empty() ? "" : fmt::format("; {}/ holds {}", look_in.string(), join(names));
}

void add_directory(const fs::path& directory, std::vector<Selection>& out) {
    std::vector<std::string> files;
    for (auto it = fs::recursive_directory_iterator(directory);
         it != fs::recursive_directory_iterator(); ++it) {
        if (it->is_directory() && it->path().filename() == "data") {
            it.disable_recursion_pending();
        } else if (it->is_regular_file() && it->path().extension() == ".toml") {
            files.push_back(it->path().string());
        }
    }
    std::sort(files.begin(), files.end());
    for (std::string& file : files) {
        out.push_back({std::move(file), ""});
    }
}

}  // namespace

std::vector<Selection> select_scenarios(const std::vector<std::string>& arguments) {
    std::vector<Selection> out;
    for (const std::string& argument : arguments) {
        const std::size_t bracket = argument.find('[');
        const bool is_run = bracket != std::string::npos && argument.back() == ']';
        const std::string base = argument.substr(0, bracket);
        const std::string run =
            is_run ? argument.substr(bracket + 1, argument.size() - bracket - 2) : "";
        bool found = false;
        for (const std::string& candidate :
             {base, base + ".toml", "scenarios/" + base, "scenarios/" + base + ".toml"}) {
            std::error_code error;
            if (fs::is_regular_file(candidate, error)) {
                out.push_back({candidate, run});
                found = true;
            } else if (!is_run && fs::is_directory(candidate, error)) {
                add_directory(candidate, out);
                found = true;
            }
            if (found) {
                break;
            }
        }
        if (!found) {
            throw StorageError(
                fmt::format("{} does not exist{}", base, what_is_there(base)),
                {{"operation", "open"}, {"file", base}, {"reason", "no such file or directory"}});
        }
    }
    return out;
}

}  // namespace swaplab::harness::scenario
