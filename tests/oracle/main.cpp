/// oracle_check [--strict] FILE|DIR...: compares oracle files with this project.

#include "oracle_check.hpp"

#include "swaplab/harness/exit_code.hpp"

#include <fmt/format.h>

#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

using swaplab::harness::ExitCode;

constexpr const char* usage =
    "usage: oracle_check [--strict] FILE|DIR...\n"
    "Compares oracle files (told by their content) and checkpoints with their expected files.\n"
    "Exit 1 when a row or a file's format differs, or when a directory has no oracle file; with\n"
    "--strict also when a row or a kind of file is not supported.\n";

ExitCode run(const std::vector<std::string>& paths, bool strict) {
    const auto storage = swaplab::harness::make_posix_storage();
    std::int64_t agree = 0;
    std::int64_t differ = 0;
    std::int64_t unsupported = 0;
    for (const std::string& path : paths) {
        const auto tallies = swaplab::oracle::check_path(*storage, path);
        if (tallies.empty()) {
            std::cout << path << "   differs: no oracle file in this directory\n";
            ++differ;
        }
        for (const auto& tally : tallies) {
            std::cout << tally.to_text() << std::flush;
            agree += tally.agreeing();
            differ += tally.differing();
            unsupported += tally.not_supported();
        }
    }
    std::cout << fmt::format("{} agree, {} differ, {} not supported\n", agree, differ, unsupported);
    return differ > 0 || (strict && unsupported > 0) ? ExitCode::failed : ExitCode::ok;
}

}  // namespace

int main(int argc, char** argv) {
    bool strict = false;
    std::vector<std::string> paths;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--strict") {
            strict = true;
        } else if (argument.starts_with("-")) {
            std::cerr << usage;
            return static_cast<int>(ExitCode::usage);
        } else {
            paths.push_back(argument);
        }
    }
    if (paths.empty()) {
        std::cerr << usage;
        return static_cast<int>(ExitCode::usage);
    }
    try {
        return static_cast<int>(run(paths, strict));
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << "\n";
        return static_cast<int>(ExitCode::environment);
    }
}
