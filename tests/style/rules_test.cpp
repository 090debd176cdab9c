#include "rules.hpp"

#include <set>

namespace swaplab::style {
namespace {

/// Two files that differ where the rule looks.
struct Example {
    std::string rule;
    File good;
    File bad;
};

std::string lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
        text += "//\n";
    }
    return text;
}

const std::vector<Example>& examples() {
    static const std::vector<Example> all{
        {"layering",
         {"optim/swap/a.cpp", "#include \"swaplab/sim/device.hpp\"\n"},
         {"sim/base/a.cpp", "#include \"swaplab/optim/tensor.hpp\"\n"}},
        {"layering",
         {"harness/train/a.cpp", "#include \"swaplab/harness/storage.hpp\"\n"},
         {"optim/swap/a.cpp", "#include \"swaplab/harness/storage.hpp\"\n"}},
        {"layering",
         {"properties/a.cpp", "#include \"support/world.hpp\"\n"},
         {"harness/train/a.cpp", "#include \"support/world.hpp\"\n"}},
        {"layering",
         {"tests/sim/a.cpp", "#include \"swaplab/harness/storage.hpp\"\n"},
         {"tests/sim/a.cpp", "#include \"properties/generators.hpp\"\n"}},
        {"checkpoint stands alone",
         {"harness/checkpoint/a.cpp", "#include \"swaplab/harness/storage.hpp\"\n"},
         {"harness/checkpoint/a.cpp", "#include \"swaplab/harness/train_engine.hpp\"\n"}},
        {"checkpoint stands alone",
         {"harness/scenario/a.cpp", "#include <toml++/toml.h>\n"},
         {"harness/checkpoint/a.cpp", "#include <toml++/toml.h>\n"}},
        {"CUDA headers",
         {"sim/cuda/a.cpp", "#include <cuda_runtime_api.h>\n"},
         {"sim/device/a.cpp", "#include <cuda_runtime_api.h>\n"}},
        {"Boost headers",
         {"sim/world/a.cpp", "#include <boost/context/fiber.hpp>\n"},
         {"sim/simulated/a.cpp", "#include <boost/context/fiber.hpp>\n"}},
        {"test libraries",
         {"tests/sim/a.cpp", "#include <gtest/gtest.h>\n"},
         {"optim/swap/a.cpp", "#include <gtest/gtest.h>\n"}},
        {"pragma once first",
         {"sim/a.hpp", "#pragma once\n"},
         {"sim/a.hpp", "// about\n#pragma once\n"}},
        {"columns",
         {"sim/a.cpp", std::string(100, 'x') + "\n"},
         {"sim/a.cpp", std::string(101, 'x') + "\n"}},
        {"ASCII", {"docs/a.md", "<=\n"}, {"docs/a.md", "\xe2\x89\xa4\n"}},
        {"file length", {"sim/a.cpp", lines(600)}, {"sim/a.cpp", lines(601)}},
        {"file size",
         {"docs/a.md", std::string(256 * 1024, 'x')},
         {"docs/a.md", std::string(256 * 1024 + 1, 'x')}},
        {"randomness",
         {"sim/a.cpp", "Rng rng(options.seed);\n"},
         {"sim/a.cpp", "std::random_device device;\n"}},
        {"wall clock",
         {"sim/a.cpp", "wait_until(deadline);\n"},
         {"sim/a.cpp", "std::this_thread::sleep_for(1s);\n"}},
        {"monotonic clock",
         {"harness/cli/a.cpp", "std::chrono::steady_clock::now();\n"},
         {"optim/swap/a.cpp", "std::chrono::steady_clock::now();\n"}},
        {"console output",
         {"harness/cli/a.cpp", "std::cout << text;\n"},
         {"harness/report/a.cpp", "std::cout << text;\n"}},
        {"leftovers",
         {"sim/a.cpp", "// why\n"},
         {"sim/a.cpp",
          "// FIX"
          "ME later\n"}},
        {"machine paths",
         {"script/a", "cd \"$(dirname \"$0\")/../work/\"\n"},
         {"script/a",
          "cd /hom"
          "e/somebody\n"}},
        {"properties throw",
         {"properties/a_properties.cpp", "PROP_EQ(a, b);\n"},
         {"properties/a_properties.cpp",
          "EXPECT_"
          "EQ(a, b);\n"}},
    };
    return all;
}

TEST(StyleRules, EveryRuleAcceptsItsGoodExampleAndRefusesItsBadOne) {
    for (const Example& example : examples()) {
        SCOPED_TRACE(example.rule);
        EXPECT_THAT(rule(example.rule).check(example.good), ::testing::IsEmpty());
        EXPECT_THAT(rule(example.rule).check(example.bad),
                    ::testing::ElementsAre(::testing::StartsWith(example.bad.path + ":")));
    }
}

TEST(StyleRules, EveryRuleHasAnExample) {
    std::set<std::string> shown;
    for (const Example& example : examples()) {
        shown.insert(example.rule);
    }
    for (const Rule& one : rules()) {
        EXPECT_TRUE(shown.contains(std::string(one.name))) << one.name;
    }
}

TEST(StyleRules, ComplaintsNameTheLine) {
    const File file{"sim/a.cpp", "//\n//\n#include <boost/any.hpp>\n"};
    EXPECT_THAT(rule("Boost headers").check(file),
                ::testing::ElementsAre("sim/a.cpp:3: boost/any.hpp belongs into sim/world/"));
}

TEST(StyleRules, TestsMayHaveBoostGraphAsAnOracle) {
    const std::string include = "#include <boost/graph/adjacency_list.hpp>\n";
    EXPECT_THAT(rule("Boost headers").check({"tests/sim/a.cpp", include}), ::testing::IsEmpty());
    EXPECT_THAT(rule("Boost headers").check({"sim/peak/a.cpp", include}), ::testing::SizeIs(1));
}

TEST(StyleRules, DataIsNotWrittenByHand) {
    EXPECT_TRUE(is_written_by_hand("tests/sim/base_test.cpp"));
    EXPECT_FALSE(is_written_by_hand("tests/data/dcp/geometry.json"));
}

}  // namespace
}  // namespace swaplab::style
