/// The part of the capacity that the device's own context takes.

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;

class ContextBytes : public ::testing::TestWithParam<AllocationPolicy> {
  protected:
    static std::unique_ptr<SimulatedDevice> make(std::uint64_t context_bytes) {
        SimulatedDeviceOptions options;
        options.capacity_bytes = 64 * mib;
        options.context_bytes = context_bytes;
        options.allocation = GetParam();
        return make_simulated_device(options);
    }
    /// Whether one allocation of so many bytes fits beside the context.
    static std::optional<OutOfDeviceMemory::Report> ask(SimulatedDevice& device,
                                                        std::uint64_t bytes) {
        const Stream stream(device, "stream");
        try {
            const DeviceBuffer all(device, bytes, stream, "all");
        } catch (const OutOfDeviceMemory& error) {
            EXPECT_THAT(error.what(), HasSubstr("(24.0 MiB) are the context's"));
            EXPECT_THAT(error.fields(),
                        Contains(ErrorField{"context_bytes", std::to_string(24 * mib)}));
            return error.report();
        }
        return std::nullopt;
    }
};

TEST_P(ContextBytes, AreNobodysToHaveAndOnNoLedger) {
    const auto device = make(24 * mib);
    EXPECT_EQ(device->memory_info().capacity_bytes, 64 * mib);
    EXPECT_EQ(device->memory_info().free_bytes, 40 * mib);
    EXPECT_EQ(device->memory_info().reserved_bytes, 0U);
    EXPECT_FALSE(ask(*device, 40 * mib).has_value());
    EXPECT_EQ(device->ledger().peak(MemoryKind::device, Size::rounded), 40 * mib);
}

TEST_P(ContextBytes, AreInTheReportOfWhatDoesNotFit) {
    const auto device = make(24 * mib);
    const auto report = ask(*device, 40 * mib + 1);
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->capacity_bytes, 64 * mib);
    EXPECT_EQ(report->context_bytes, 24 * mib);
    EXPECT_EQ(report->free_bytes(), 40 * mib);
    EXPECT_FALSE(report->waiting_suffices);
}

TEST_P(ContextBytes, MayTakeAllAndNoMore) {
    EXPECT_EQ(make(64 * mib)->memory_info().free_bytes, 0U);
    EXPECT_THROW(make(64 * mib + 1), ArgumentError);
}

INSTANTIATE_TEST_SUITE_P(Policies, ContextBytes,
                         ::testing::Values(AllocationPolicy::raw, AllocationPolicy::caching,
                                           AllocationPolicy::stream_ordered),
                         [](const auto& policy) { return std::string(name_of(policy.param)); });

}  // namespace
}  // namespace swaplab::sim
