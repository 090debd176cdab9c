/// The example in docs/simulator.md is the one that is built and run.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace swaplab::sim {
namespace {

std::string content(const std::string& file) {
    std::ifstream stream(std::filesystem::path(SWAPLAB_SOURCE_DIR) / file);
    EXPECT_TRUE(stream.is_open()) << file;
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

TEST(SimulatorDoc, ShowsTheExampleThatIsRun) {
    const std::string program = content("tests/sim/example_race.cpp");
    std::istringstream body(program.substr(program.find("int main()")));
    std::string indented;
    for (std::string line; std::getline(body, line);) {
        indented += (line.empty() ? "" : "    ") + line + "\n";
    }
    EXPECT_NE(content("docs/simulator.md").find(indented), std::string::npos)
        << "copy main() of tests/sim/example_race.cpp into docs/simulator.md, indented by 4";
}

}  // namespace
}  // namespace swaplab::sim
