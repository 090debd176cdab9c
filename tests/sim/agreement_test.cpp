#include "swaplab/sim/agreement.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/message.hpp"
#include "swaplab/sim/world.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

void run(int ranks, const RankProgram& program) {
    rethrow_first(run_ranks({.size = ranks}, program));
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
            EXPECT_THAT(error.fields(), Contains(ErrorField{"file", "x"}));
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

/// What every rank of two throws when rank 0 calls `mine` and rank 1 `theirs`.
std::vector<RankResult> run_two(const RankProgram& mine, const RankProgram& theirs) {
    return run_ranks({.size = 2}, [&](Communicator& communicator) {
        (communicator.rank() == 0 ? mine : theirs)(communicator);
    });
}

TEST(Agree, RefusesDifferentOperationsOnAllRanksBeforeAnOutcomeCounts) {
    const std::vector<std::function<void()>> outcomes{[] {},
                                                      [] { throw StorageError("disk full"); }};
    for (const auto& outcome : outcomes) {
        const auto results = run_two(
            [](Communicator& communicator) { agree(communicator, "SwapAdamW::load", [] {}); },
            [&](Communicator& communicator) { agree(communicator, "save_checkpoint", outcome); });
        for (const RankResult& result : results) {
            try {
                std::rethrow_exception(result.error);
            } catch (const CollectiveMismatch& error) {
                const auto value_of = [&](const std::string& name) {
                    const auto& fields = error.fields();
                    return std::find_if(fields.begin(), fields.end(),
                                        [&](const ErrorField& f) { return f.name == name; })
                        ->value;
                };
                EXPECT_THAT(value_of("expected"), HasSubstr("\"SwapAdamW::load\""));
                EXPECT_THAT(value_of("found"), HasSubstr("\"save_checkpoint\""));
                EXPECT_THAT(error.fields(), Contains(ErrorField{"rank", "rank 1"}));
                EXPECT_THAT(error.fields(), Contains(ErrorField{"purpose", "save_checkpoint"}));
                EXPECT_THAT(error.what(), HasSubstr("rank 1: all_gather_object 1 for "
                                                    "\"save_checkpoint\" (agreement_test.cpp:"));
            }
        }
    }
}

TEST(Agree, RefusesAnotherObjectGatheredInItsPlace) {
    for (const RankResult& result :
         run_two([](Communicator& communicator) { agree(communicator, "SwapAdamW::load", [] {}); },
                 [](Communicator& communicator) {
                     static_cast<void>(communicator.all_gather_object("x", "steps"));
                 })) {
        EXPECT_THROW(std::rethrow_exception(result.error), CollectiveMismatch);
    }
}

TEST(RethrowWithNote, KeepsKindAndFieldsAndAddsTheNote) {
    const auto error = std::make_exception_ptr(StorageError("gone", {{"file", "x"}}));
    try {
        rethrow_with_note(error, "load again");
    } catch (const StorageError& noted) {
        EXPECT_EQ(noted.what(), std::string("gone\nload again"));
        EXPECT_THAT(noted.fields(), Contains(ErrorField{"file", "x"}));
    }
}

}  // namespace
}  // namespace swaplab::sim
