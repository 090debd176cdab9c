/// What a CUDA device that fails leaves of an optimizer: its state is intact, or marked torn.

#include "support/training.hpp"

#include "swaplab/optim/cuda_kernels.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/cuda/cuda_device.hpp"
#include "swaplab/sim/cuda/standin.hpp"

#include <cuda_runtime_api.h>
#include <functional>
#include <optional>

namespace swaplab::optim {
namespace {

using sim::FaultAction;
using sim::StandinFault;
using support::Trainer;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class FailingCuda : public ::testing::Test {
  protected:
    void SetUp() override {
        if (sim::standin() == nullptr) {
            GTEST_SKIP() << "faults need the stand-in";
        }
        register_cuda_kernels();
    }

    static StandinFault fault(const std::string& call, cudaError_t code,
                              FaultAction action = FaultAction::fail, std::uint64_t ordinal = 1) {
        StandinFault result;
        result.call = call;
        result.ordinal = ordinal;
        result.code = code;
        result.action = action;
        return result;
    }

    /// Trains two steps, then a third that meets the fault; `judge` sees what it threw.
    static void strike(const StandinFault& struck,
                       const std::function<void(SwapAdamW&, const sim::Error&)>& judge) {
        sim::standin()->configure({});
        support::on_ranks(1, [&](sim::Communicator& communicator) {
            Trainer trainer(communicator, {{"a", {31, 7}, {}}, {"b", {40}, {}}},
                            sim::make_cuda_device({}));
            SwapAdamW swap(trainer.faulty_device(), communicator, {trainer.group()}, {64, 2});
            trainer.train(swap, 0, 2);
            const StateDict before = swap.state_dict();
            trainer.set_gradients(2);
            sim::standin()->arm({struck});
            bool failed = false;
            try {
                swap.step();
            } catch (const sim::Error& error) {
                failed = true;
                judge(swap, error);
            }
            ASSERT_TRUE(failed) << "the fault did not strike";
            if (!swap.torn()) {
                EXPECT_TRUE(same_value(to_value(swap.state_dict()), to_value(before)));
            }
        });
    }

    enum class State { torn, intact };

    /// A DeviceLost that names call, code, origin and what to do.
    static void expect_lost(const StandinFault& struck, State state, const std::string& code,
                            const std::string& to_do) {
        strike(struck, [&](SwapAdamW& swap, const sim::Error& error) {
            EXPECT_NE(dynamic_cast<const sim::DeviceLost*>(&error), nullptr) << error.message();
            EXPECT_THAT(error.message(),
                        AllOf(HasSubstr(" returned " + code), HasSubstr(to_do), HasSubstr("cuda")));
            EXPECT_THAT(error.fields(),
                        Contains(::testing::Field(&sim::ErrorField::name, "origin")));
            EXPECT_EQ(swap.torn(), state == State::torn);
            if (swap.torn()) {
                EXPECT_THROW(swap.step(), TornState);
            } else {
                EXPECT_THROW(swap.step(), sim::DeviceLost);
            }
        });
    }
};

TEST_F(FailingCuda, ADeviceLostInMidStepTearsTheStateAndSaysSo) {
    expect_lost(fault("cudaMemcpyAsync", cudaErrorIllegalAddress, FaultAction::late, 5),
                State::torn, "cudaErrorIllegalAddress (700)", "compute-sanitizer");
    expect_lost(fault("cudaEventRecord", cudaErrorContextIsDestroyed, FaultAction::fail, 6),
                State::torn, "cudaErrorContextIsDestroyed (709)", "start the process anew");
}

TEST_F(FailingCuda, ALaunchFailureTearsTheStateAndSaysSo) {
    expect_lost(fault("cudaLaunchKernel", cudaErrorLaunchFailure, FaultAction::late, 2),
                State::torn, "cudaErrorLaunchFailure (719)", "compute-sanitizer");
    expect_lost(fault("cudaLaunchKernel", cudaErrorLaunchFailure), State::torn,
                "cudaErrorLaunchFailure (719)", "compute-sanitizer");
}

TEST_F(FailingCuda, AnEccErrorBeforeAnythingMovedLeavesTheStateIntact) {
    expect_lost(fault("cudaMallocFromPoolAsync", cudaErrorECCUncorrectable), State::intact,
                "cudaErrorECCUncorrectable (214)", "Xid");
    expect_lost(fault("cudaMemcpyAsync", cudaErrorECCUncorrectable, FaultAction::fail, 6),
                State::torn, "cudaErrorECCUncorrectable (214)", "Xid");
}

TEST_F(FailingCuda, NoFreeMemoryLeavesTheStateIntactAndTheDeviceUsable) {
    strike(fault("cudaMallocFromPoolAsync", cudaErrorMemoryAllocation, FaultAction::fail, 2),
           [](SwapAdamW& swap, const sim::Error& error) {
               const auto* out = dynamic_cast<const sim::OutOfDeviceMemory*>(&error);
               ASSERT_NE(out, nullptr) << error.message();
               EXPECT_THAT(out->report().tag, HasSubstr("slot"));
               EXPECT_FALSE(out->holders().empty());
               EXPECT_FALSE(swap.torn());
           });
}

TEST_F(FailingCuda, NoPinnedMemoryLeavesNothingBehind) {
    sim::standin()->configure({});
    support::on_ranks(1, [](sim::Communicator& communicator) {
        Trainer trainer(communicator, {{"a", {31, 7}, {}}}, sim::make_cuda_device({}));
        const sim::MemoryLedger& ledger = trainer.faulty_device().ledger();
        const std::uint64_t pinned = ledger.now(sim::MemoryKind::pinned);
        sim::standin()->arm({fault("cudaHostAlloc", cudaErrorMemoryAllocation)});
        try {
            const SwapAdamW swap(trainer.faulty_device(), communicator, {trainer.group()});
            FAIL() << "the fault did not strike";
        } catch (const sim::OutOfDeviceMemory& error) {
            EXPECT_EQ(error.report().memory, "pinned");
        }
        EXPECT_EQ(ledger.now(sim::MemoryKind::pinned), pinned);
        const SwapAdamW works(trainer.faulty_device(), communicator, {trainer.group()});
    });
}

}  // namespace
}  // namespace swaplab::optim
