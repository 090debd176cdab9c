#include "swaplab/sim/agreement.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/message.hpp"
#include "swaplab/sim/world.hpp"

#include <stdexcept>
#include <string>

namespace swaplab::sim {
namespace {

void run(int ranks, const RankProgram& program) {
    rethrow_first(run_ranks({ranks, 1}, program));
}

TEST(Message, GivesBackWhatWasPut) {
    Message message;
    message.put(std::uint64_t{7});
    message.put("two words 12 ");
    message.put("");
    Message received(message.bytes());
    EXPECT_EQ(received.number(), 7U);
    EXPECT_EQ(received.text(), "two words 12 ");
    EXPECT_EQ(received.text(), "");
}

TEST(Agree, ReturnsOnAllRanksWhenAllSucceed) {
    run(3, [](Communicator& communicator) {
        bool done = false;
        agree(communicator, "work", [&] { done = true; });
        EXPECT_TRUE(done);
    });
}

TEST(Agree, GivesEveryRankTheKindTextAndFieldsOfTheOneThatFailed) {
    run(3, [](Communicator& communicator) {
        try {
            agree(communicator, "read", [&] {
                if (communicator.rank() == 1) {
                    throw StorageError("disk full", {{"file", "x"}});
                }
            });
            ADD_FAILURE() << "rank " << communicator.rank() << " went on";
        } catch (const StorageError& error) {
            const bool own = communicator.rank() == 1;
            EXPECT_EQ(error.what(), std::string(own ? "disk full" : "rank 1, read: disk full"));
            EXPECT_THAT(error.fields(), ::testing::Contains(ErrorField{"file", "x"}));
        }
    });
}

TEST(Agree, LetsTheLowestFailedRankDecideTheKind) {
    run(3, [](Communicator& communicator) {
        EXPECT_THROW(agree(communicator, "work",
                           [&] {
                               if (communicator.rank() == 1) {
                                   throw DeviceError("broken");
                               }
                               if (communicator.rank() == 2) {
                                   throw ArgumentError("wrong");
                               }
                           }),
                     DeviceError);
    });
}

TEST(Agree, RethrowsEachRanksOwnErrorWhenAllFailAlike) {
    run(2, [](Communicator& communicator) {
        const std::string mine = "missing on " + std::to_string(communicator.rank());
        try {
            agree(communicator, "open", [&] { throw StorageError(mine); });
        } catch (const StorageError& error) {
            EXPECT_EQ(error.what(), mine);
        }
    });
}

TEST(Agree, CarriesTheReportOfAnOutOfMemoryError) {
    run(2, [](Communicator& communicator) {
        try {
            agree(communicator, "step", [&] {
                if (communicator.rank() == 0) {
                    OutOfDeviceMemory::Report report;
                    report.tag = "a.exp_avg";
                    report.requested_bytes = 8192;
                    report.capacity_bytes = 4096;
                    report.by_tag = {{"param a", 100, 256, {}}};
                    throw OutOfDeviceMemory(report);
                }
            });
            ADD_FAILURE();
        } catch (const OutOfDeviceMemory& error) {
            EXPECT_EQ(error.report().tag, "a.exp_avg");
            EXPECT_EQ(error.report().requested_bytes, 8192U);
            EXPECT_EQ(error.report().by_tag.at(0).rounded_bytes, 256U);
        }
    });
}

TEST(Agree, EndsForeignExceptionsOnAllRanksToo) {
    run(2, [](Communicator& communicator) {
        EXPECT_THROW(agree(communicator, "hook",
                           [&] {
                               if (communicator.rank() == 1) {
                                   throw std::out_of_range("hook");
                               }
                           }),
                     std::exception);
        communicator.barrier();
    });
}

TEST(RethrowWithNote, KeepsKindAndFieldsAndAddsTheNote) {
    const auto error = std::make_exception_ptr(StorageError("gone", {{"file", "x"}}));
    try {
        rethrow_with_note(error, "load again");
    } catch (const StorageError& noted) {
        EXPECT_EQ(noted.what(), std::string("gone\nload again"));
        EXPECT_THAT(noted.fields(), ::testing::Contains(ErrorField{"file", "x"}));
    }
}

}  // namespace
}  // namespace swaplab::sim
