// Words that speak of disks, of host memory and of every order.

#include "scenario/play/limited_storage.hpp"
#include "scenario/play/orders.hpp"
#include "scenario/play/unsynced_storage.hpp"
#include "story.hpp"

#include <gmock/gmock.h>

namespace swaplab::harness::scenario {
namespace {

using testing::HasSubstr;

void write(Storage& storage, const std::string& path, std::size_t bytes, bool synced) {
    const auto file = storage.create(path);
    file->append(std::vector<std::byte>(bytes, std::byte{7}));
    if (synced) {
        file->sync();
    }
    file->close();
}

TEST(LimitedStorage, IsFullAtItsCapacityAndNotBefore) {
    const auto memory = make_memory_storage();
    const auto disk = make_limited_storage(*memory, 100);
    disk->make_directory("d");
    write(*disk, "d/a", 60, true);
    write(*disk, "b", 40, true);
    try {
        write(*disk, "c", 1, true);
        FAIL() << "101 B on a disk of 100 B";
    } catch (const StorageError& error) {
        EXPECT_THAT(error.fields(), testing::Contains(sim::ErrorField{"reason", "no space left"}));
    }
    disk->remove("d");
    EXPECT_THROW(write(*disk, "e", 70, true), StorageError);
    EXPECT_EQ(memory->file_bytes("e").size(), 60U);  // as far as there was room
}

TEST(UnsyncedStorage, LosesBytesAndNamesThatWereNotSynced) {
    const auto memory = make_memory_storage();
    UnsyncedStorage disk(*memory);
    disk.make_directory("new");
    write(disk, "new/synced", 5, true);
    write(disk, "new/not", 5, false);
    disk.sync_directory("new");
    disk.rename("new", "late");
    EXPECT_EQ(disk.list("late").size(), 2U);
    EXPECT_EQ(disk.list(".").size(), 1U);
    disk.lose_power();
    EXPECT_FALSE(disk.exists("late"));
    EXPECT_EQ(disk.open("new/synced")->size(), 5U);
    EXPECT_EQ(disk.open("new/not")->size(), 0U);
    disk.rename("new", "early");
    disk.sync_directory(".");
    disk.lose_power();
    EXPECT_FALSE(disk.exists("new"));
    EXPECT_EQ(disk.open("early/synced")->size(), 5U);
}

TEST(UnsyncedStorage, ExchangesAndRemovesWhatTheDirectoryWasSyncedFor) {
    const auto memory = make_memory_storage();
    UnsyncedStorage disk(*memory);
    for (const char* name : {"a", "b"}) {
        disk.make_directory(name);
        write(disk, std::string(name) + "/of_" + name, 1, true);
    }
    disk.sync_directory(".");
    disk.exchange("a", "b");
    disk.sync_directory(".");
    disk.remove("b");
    disk.lose_power();
    EXPECT_TRUE(disk.exists("a/of_b"));
    EXPECT_TRUE(disk.exists("b/of_a"));
    disk.remove("b");
    disk.settle();
    disk.lose_power();
    EXPECT_FALSE(disk.exists("b"));
}

TEST(EveryOrder, GoesThroughAllCombinationsOnce) {
    std::set<std::vector<std::size_t>> seen;
    Orders orders;
    do {
        OrderRecord first;
        OrderRecord second;
        first.begin = orders[{0, 0}];
        second.begin = orders[{0, 1}];
        std::vector<std::size_t> taken{first.choose(2), second.choose(3)};
        if (taken.front() == 1) {
            taken.push_back(second.choose(2));
        }
        EXPECT_TRUE(seen.insert(taken).second);
        orders = next_orders({{{0, 0}, first.taken}, {{0, 1}, second.taken}});
    } while (!orders.empty());
    EXPECT_EQ(seen.size(), 3U + 6U);
}

TEST(EveryOrder, OfTooManyIsAFailureThatSaysSo) {
    Overrides exhaustive;
    exhaustive.set = {{"device.schedule", "exhaustive"}};
    const Verdict verdict = verdict_of("{ train = 3 }", ours, "", exhaustive);
    EXPECT_EQ(verdict.status, Status::fail);
    EXPECT_THAT(verdict.headline, HasSubstr("more than 1,000 orders"));
}

TEST(EveryOrder, AreAtLeastOneForEachOtherChoice) {
    EXPECT_EQ(fewest_orders({}), 1U);
    EXPECT_EQ(fewest_orders({{{0, 0}, {{0, 2}, {1, 3}}}, {{4, 1}, {{0, 5}}}}), 1U + 1 + 2 + 4);
}

TEST(EveryOrder, SaysInHowManyAnExpectationHolds) {
    Overrides exhaustive;
    exhaustive.world = 1;
    exhaustive.set = {{"device.schedule", "exhaustive"}, {"optimizer.bucket", "\"64 elements\""}};
    const Verdict verdict =
        verdict_of("{ train = 1, expect.device.kept = \"0 B\" }", ours, "", exhaustive);
    EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
    EXPECT_THAT(verdict.headline, HasSubstr(", in each of "));
}

TEST(HostMemory, HasACapacity) {
    Overrides small;
    small.set = {{"host.capacity", "\"64 B\""}};
    const Verdict verdict = verdict_of(
        "{ hold = { name = \"x\", bytes = \"60 B\", memory = \"host\" } }, "
        "{ hold = { name = \"y\", bytes = \"5 B\", memory = \"host\" }, "
        "expect.error = { kind = \"out_of_memory\", naming = [\"host\", \"y\"] } }, "
        "{ release = \"x\" }, { hold = { name = \"z\", bytes = \"64 B\", memory = \"host\" } }",
        ours, "", small);
    EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
}

}  // namespace
}  // namespace swaplab::harness::scenario
