#include "scenario/language/selection.hpp"

#include "checkpoint/paths.hpp"
#include "checkpoint/storage_error.hpp"

#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace swaplab::harness::scenario {
namespace {

namespace fs = std::filesystem;

void add_directory(const fs::path& directory, std::vector<Selection>& out) {
    std::vector<std::string> files;
    std::error_code error;
    for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error)) {
        std::error_code vanished;
        if (it->is_directory(vanished) && it->path().filename() == "data") {
            it.disable_recursion_pending();
        } else if (it->path().extension() == ".toml" && !it->is_directory(vanished)) {
            files.push_back(it->path().string());
        }
    }
    if (error) {
        throw StorageError(
            fmt::format("cannot look through {}: {}; check its permissions", directory.string(),
                        error.message()),
            {{"operation", "list"}, {"file", directory.string()}, {"reason", error.message()}});
    }
    std::sort(files.begin(), files.end());
    for (std::string& file : files) {
        out.push_back({std::move(file), ""});
    }
}

[[noreturn]] void refuse(const std::string& argument, const char* why) {
    throw sim::ArgumentError(
        fmt::format("\"{}\" {}: give a file, a directory or 'family/name[case]'", argument, why),
        {{"found", argument}});
}

/// "family/name[case, cell]" in its parts; a file whose name has brackets is taken as it is.
Selection split(const std::string& argument) {
    std::error_code error;
    const std::size_t bracket = argument.find('[');
    if (argument.empty() || bracket == 0) {
        refuse(argument, "names no file");
    }
    if (bracket == std::string::npos || fs::exists(argument, error)) {
        return {argument, ""};
    }
    if (argument.back() != ']' || bracket + 2 == argument.size()) {
        refuse(argument, "names no run");
    }
    return {argument.substr(0, bracket),
            argument.substr(bracket + 1, argument.size() - bracket - 2)};
}

/// Returns whether `path` is something: a file, or without a run a directory.
bool add_path(const std::string& path, const std::string& run, std::vector<Selection>& out) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) {
        out.push_back({path, run});
        return true;
    }
    if (fs::is_directory(path, error)) {
        if (run.empty()) {
            add_directory(path, out);
        }
        return run.empty();
    }
    if (fs::exists(path, error)) {
        throw StorageError(
            fmt::format("{} is a pipe, socket or device, not a regular file: give the path of a "
                        "file",
                        path),
            {{"operation", "open"}, {"file", path}, {"reason", "not a regular file"}});
    }
    return false;
}

}  // namespace

std::vector<Selection> select_scenarios(const std::vector<std::string>& arguments) {
    std::vector<Selection> out;
    for (const std::string& argument : arguments) {
        const Selection wanted = split(argument);
        bool found = false;
        for (const std::string& candidate :
             {wanted.file, wanted.file + ".toml", "scenarios/" + wanted.file,
              "scenarios/" + wanted.file + ".toml"}) {
            found = found || add_path(candidate, wanted.run, out);
        }
        if (!found) {
            throw missing_error(*make_posix_storage(), "open", normal_path(wanted.file));
        }
    }
    return out;
}

}  // namespace swaplab::harness::scenario
