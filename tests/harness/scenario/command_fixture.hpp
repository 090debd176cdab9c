#pragma once

/// The built command, run by a shell in a directory of its own.

#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>

namespace swaplab::harness {

struct Ran {
    int exit = -1;
    std::string out;  ///< stdout and stderr
};

/// Runs the built command in `directory`; `arguments` may redirect its streams, `environment` is
/// "NAME=VALUE " or empty.
inline Ran swaplab(const std::string& directory, const std::string& arguments,
                   const std::string& environment = "") {
    const std::string line = "cd '" + directory + "' && { " + environment +
                             "'" SWAPLAB_COMMAND "' " + arguments + "; } 2>&1";
    Ran ran;
    FILE* pipe = ::popen(line.c_str(), "r");
    std::array<char, 4096> buffer{};
    while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
        ran.out.append(buffer.data(), count);
    }
    ran.exit = WEXITSTATUS(::pclose(pipe));
    return ran;
}

inline const std::string good =
    "scenario.name = 'n'\nscenario.why = 'w'\nparam = [{ name = 'a', shape = [4] }]\n"
    "step = [{ train = 1, expect.device.peak = ['1 resident', '1 ring'] }]\n";
inline const std::string passes = "case = [{ optimizer = 'swap_adamw', verdict = 'passes' }]\n";

class Command : public testing::Test {
  protected:
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(home_.path() + "/" + name) << text;
    }
    [[nodiscard]] std::string read(const std::string& name) const {
        std::stringstream text;
        text << std::ifstream(home_.path() + "/" + name).rdbuf();
        return text.str();
    }
    [[nodiscard]] std::string path(const std::string& name) const {
        return home_.path() + "/" + name;
    }
    [[nodiscard]] Ran run(const std::string& arguments) const {
        return swaplab(home_.path(), arguments);
    }

  private:
    tests::TemporaryDirectory home_;
};

}  // namespace swaplab::harness
