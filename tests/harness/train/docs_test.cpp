#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace swaplab::harness {
namespace {

std::string content_of(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream content;
    content << file.rdbuf();
    return content.str();
}

TEST(EmbeddingDocument, ShowsTheProgramThatTheTestsRun) {
    const std::string program = content_of("tests/harness/train/embedding_example.cpp");
    ASSERT_FALSE(program.empty());
    EXPECT_NE(content_of("docs/embedding.md").find("```cpp\n" + program + "```"),
              std::string::npos);
}

}  // namespace
}  // namespace swaplab::harness
