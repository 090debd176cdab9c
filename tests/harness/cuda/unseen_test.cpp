/// Scenarios on a backend that does not see inside of its devices, as on a GPU.

#include "scenario/judge/unseen.hpp"

#include "scenario/play/backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace swaplab::harness::scenario {
namespace {

class Opaque final : public Backend {
  public:
    [[nodiscard]] std::string name() const override { return "a GPU"; }
    [[nodiscard]] bool sees_inside() const override { return false; }
    void begin(int /*ranks*/, const sim::SimulatedDeviceOptions& /*options*/) const override {}
    [[nodiscard]] std::unique_ptr<sim::SimulatedDevice> make(
        const sim::SimulatedDeviceOptions& options) const override {
        return sim::make_simulated_device(options);
    }
    [[nodiscard]] std::function<void(void*)> write_launcher(
        void* /*target*/, std::vector<std::byte> /*bytes*/) const override {
        return {};
    }
};

Run run_on(const Backend* backend) {
    Run run;
    run.backend = backend;
    return run;
}

TEST(Unseen, RunsThatMustFailWhereNothingShowsAreSkippedWithAReason) {
    const Opaque gpu;
    auto run = run_on(&gpu);
    EXPECT_EQ(why_not_here(run), "");
    run.which.fails.push_back({});
    run.which.fails.back().path = "train-2.findings";
    EXPECT_THAT(why_not_here(run), ::testing::HasSubstr("train-2.findings"));
    run.backend = nullptr;
    EXPECT_EQ(why_not_here(run), "");
}

TEST(Unseen, ForkedRanksAreSkippedWithAReason) {
    const Opaque gpu;
    auto run = run_on(&gpu);
    run.start.world_kind = sim::WorldKind::process;
    EXPECT_THAT(why_not_here(run), ::testing::HasSubstr("forked"));
}

TEST(Unseen, ChecksOfWhatIsNotSeenSaySoAndOthersStay) {
    const Opaque gpu;
    std::vector<Check> checks(4);
    checks[0].path = "train.findings";
    checks[1].path = "load.device.worst.peak";
    checks[2].path = "load.device.rise";
    checks[3].path = "findings";
    const std::vector<Check> before = checks;
    set_unseen_aside(run_on(&gpu), checks);
    for (const std::size_t i : {0U, 1U, 3U}) {
        EXPECT_TRUE(checks[i].ok);
        EXPECT_THAT(checks[i].summary, ::testing::HasSubstr("not checked: a GPU"));
    }
    EXPECT_FALSE(checks[2].ok);
    checks = before;
    set_unseen_aside(run_on(nullptr), checks);
    EXPECT_FALSE(checks[0].ok);
}

}  // namespace
}  // namespace swaplab::harness::scenario
