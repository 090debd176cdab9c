/// Races, in-flight reuse and their reports, on correct programs with one thing taken away.

#include "device_contract.hpp"

#include "swaplab/sim/simulated_device.hpp"

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto all_schedules = {Schedule::fifo, Schedule::random, Schedule::latest};

std::vector<FindingKind> kinds_of(const SimulatedDevice& device) {
    std::vector<FindingKind> kinds;
    for (const Finding& finding : device.findings()) {
        kinds.push_back(finding.kind);
    }
    return kinds;
}

enum class Left {
    nothing,
    wait_for_slot,
    wait_for_upload,
    wait_for_update,
    wait_for_download,
    record_of_upload,
    record_of_update,
    record_of_download,
};
constexpr auto everything_left = {Left::wait_for_slot,     Left::wait_for_upload,
                                  Left::wait_for_update,   Left::wait_for_download,
                                  Left::record_of_upload,  Left::record_of_update,
                                  Left::record_of_download};

/// Buckets of pinned memory ring through device slots: upload, add 1, download.
class SwapPipeline {
  public:
    SwapPipeline(SimulatedDevice& device, Left left) : device_(device), left_(left) {
        write_count(memory_, 1);
        for (std::size_t slot = 0; slot < slot_count; ++slot) {
            slots_.emplace_back(device, bucket_bytes, upload_, "slot " + std::to_string(slot));
            uploaded_.emplace_back(device);
            updated_.emplace_back(device);
            downloaded_.emplace_back(device);
        }
    }

    std::vector<std::byte> run() {
        for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
            swap(bucket, bucket % slot_count);
        }
        for (const Event& event : downloaded_) {
            if (left_ != Left::wait_for_download) {
                device_.synchronize(event.ref());
            }
        }
        std::vector<std::byte> result = contents(memory_);
        for (const Stream* stream : {&upload_, &update_, &download_}) {
            device_.synchronize(stream->ref());
        }
        return result;
    }

    static constexpr std::size_t bucket_count = 7;
    static constexpr std::size_t slot_count = 3;
    static constexpr std::uint64_t bucket_bytes = 64;

  private:
    void swap(std::size_t bucket, std::size_t slot) {
        std::byte* const host = memory_.data() + bucket * bucket_bytes;
        std::byte* const there = slots_[slot].data();
        if (left_ != Left::wait_for_slot) {
            device_.wait(upload_, downloaded_[slot]);
        }
        device_.copy_async(there, host, bucket_bytes, CopyDirection::host_to_device, upload_);
        record(uploaded_[slot], upload_, Left::record_of_upload);
        if (left_ != Left::wait_for_upload) {
            device_.wait(update_, uploaded_[slot]);
        }
        device_.launch(add_kernel(there, bucket_bytes, 1), update_);
        record(updated_[slot], update_, Left::record_of_update);
        if (left_ != Left::wait_for_update) {
            device_.wait(download_, updated_[slot]);
        }
        device_.copy_async(host, there, bucket_bytes, CopyDirection::device_to_host, download_);
        record(downloaded_[slot], download_, Left::record_of_download);
    }

    void record(const Event& event, const Stream& stream, Left unless) {
        if (left_ != unless) {
            device_.record(event, stream);
        }
    }

    SimulatedDevice& device_;
    Left left_;
    Stream upload_{device_, "upload"};
    Stream update_{device_, "update"};
    Stream download_{device_, "download"};
    PinnedBuffer memory_{device_, bucket_count* bucket_bytes, "moments"};
    std::vector<DeviceBuffer> slots_;
    std::vector<Event> uploaded_;
    std::vector<Event> updated_;
    std::vector<Event> downloaded_;
};

std::vector<std::byte> expected_result() {
    std::vector<std::byte> result;
    for (unsigned i = 0; i < SwapPipeline::bucket_count * SwapPipeline::bucket_bytes; ++i) {
        result.push_back(static_cast<std::byte>(i + 2));
    }
    return result;
}

TEST(Races, ACorrectPipelineIsRightAndFreeOfFindingsUnderEverySchedule) {
    for (const Schedule schedule : all_schedules) {
        for (std::uint64_t seed = 1; seed <= 50; ++seed) {
            const auto device = make_simulated_device({.schedule = schedule, .seed = seed});
            EXPECT_EQ(SwapPipeline(*device, Left::nothing).run(), expected_result());
            device->finish();
            ASSERT_THAT(kinds_of(*device), IsEmpty()) << device->findings().at(0).text;
        }
    }
}

TEST(Races, EveryMissingWaitOrRecordIsARaceUnderEverySchedule) {
    for (const Left left : everything_left) {
        for (const Schedule schedule : all_schedules) {
            const auto device = make_simulated_device({.schedule = schedule});
            static_cast<void>(SwapPipeline(*device, left).run());
            EXPECT_THAT(kinds_of(*device), Contains(FindingKind::race))
                << "left out " << static_cast<int>(left) << " under " << name_of(schedule);
        }
    }
}

TEST(Races, EveryMissingWaitOrRecordGivesWrongBytesUnderSomeSchedule) {
    for (const Left left : everything_left) {
        bool wrong = false;
        for (const Schedule schedule : {Schedule::random, Schedule::latest}) {
            for (std::uint64_t seed = 1; seed <= 20; ++seed) {
                const auto device = make_simulated_device({.schedule = schedule, .seed = seed});
                wrong = wrong || SwapPipeline(*device, left).run() != expected_result();
            }
        }
        EXPECT_TRUE(wrong) << "left out " << static_cast<int>(left);
    }
}

TEST(Races, EqualSeedsRunInEqualOrder) {
    const auto digest_of = [](Schedule schedule, std::uint64_t seed, int rank) {
        const auto device =
            make_simulated_device({.rank = rank, .schedule = schedule, .seed = seed});
        static_cast<void>(SwapPipeline(*device, Left::nothing).run());
        device->finish();
        return device->execution_digest();
    };
    for (const Schedule schedule : all_schedules) {
        EXPECT_EQ(digest_of(schedule, 7, 0), digest_of(schedule, 7, 0));
    }
    EXPECT_NE(digest_of(Schedule::random, 7, 0), digest_of(Schedule::random, 8, 0));
    EXPECT_NE(digest_of(Schedule::random, 7, 0), digest_of(Schedule::random, 7, 1));
    EXPECT_NE(digest_of(Schedule::fifo, 7, 0), digest_of(Schedule::latest, 7, 0));
}

class Conflicts : public ::testing::TestWithParam<Schedule> {
  protected:
    std::unique_ptr<SimulatedDevice> owner = make_simulated_device({.schedule = GetParam()});
    SimulatedDevice& device = *owner;
    Stream one{device, "one"};
    Stream two{device, "two"};
    PinnedBuffer pinned{device, 64, "pinned"};

    void order(const Stream& before, const Stream& after) {
        const Event event(device);
        device.record(event, before);
        device.wait(after, event);
    }
    void upload(std::byte* to, std::uint64_t offset, std::uint64_t bytes, const Stream& on) {
        device.copy_async(to + offset, pinned.data() + offset, bytes, CopyDirection::host_to_device,
                          on);
    }
    void download(const std::byte* from, std::uint64_t offset, std::uint64_t bytes,
                  const Stream& on) {
        device.copy_async(pinned.data() + offset, from + offset, bytes,
                          CopyDirection::device_to_host, on);
    }
};
INSTANTIATE_TEST_SUITE_P(Schedules, Conflicts, ::testing::ValuesIn(all_schedules),
                         [](const auto& schedule) { return std::string(name_of(schedule.param)); });

TEST_P(Conflicts, AReportNamesBothOperationsRangeTagAndMissingEdge) {
    const DeviceBuffer memory(device, 64, one, "memory");
    order(one, two);
    upload(memory.data(), 0, 64, one);
    download(memory.data(), 16, 8, two);
    ASSERT_EQ(kinds_of(device), std::vector{FindingKind::race});
    const Finding& finding = device.findings().at(0);
    EXPECT_THAT(finding.text, HasSubstr("race: rank 0, \"memory\" bytes 16 to 24: copy d2h on two "
                                        "(race_test.cpp:"));
    EXPECT_THAT(finding.text, HasSubstr("is not ordered after copy h2d on one (race_test.cpp:"));
    EXPECT_THAT(finding.text, HasSubstr("missing: record on one -> wait on two"));
    EXPECT_THAT(finding.fields, Contains(ErrorField{"rank", "rank 0"}));
    EXPECT_THAT(finding.fields, Contains(ErrorField{"tag", "memory"}));
    EXPECT_THAT(finding.fields, Contains(ErrorField{"offset_bytes", "16"}));
    EXPECT_THAT(finding.fields, Contains(ErrorField{"bytes", "8"}));
    EXPECT_THAT(finding.fields, Contains(ErrorField{"operation", "copy h2d"}));
    EXPECT_THAT(finding.fields, Contains(ErrorField{"operation", "copy d2h"}));
    EXPECT_THAT(finding.fields, Contains(ErrorField{"missing", "record on one -> wait on two"}));
}

TEST_P(Conflicts, DisjointBytesDoNotConflict) {
    const DeviceBuffer memory(device, 64, one, "memory");
    order(one, two);
    upload(memory.data(), 0, 32, one);
    upload(memory.data(), 32, 32, two);
    device.launch(add_kernel(memory.data() + 31, 1, 1), one);
    device.launch(add_kernel(memory.data() + 32, 1, 1), two);
    EXPECT_THAT(kinds_of(device), IsEmpty());
    device.launch(add_kernel(memory.data() + 31, 2, 1), two);
    EXPECT_EQ(kinds_of(device), std::vector{FindingKind::race});
}

TEST_P(Conflicts, TwoReadsDoNotConflictButAWriteAfterThemDoes) {
    const DeviceBuffer memory(device, 64, one, "memory");
    const DeviceBuffer copy(device, 128, one, "copy");
    upload(memory.data(), 0, 64, one);
    order(one, two);
    device.copy_async(copy.data(), memory.data(), 64, CopyDirection::device_to_device, one);
    device.copy_async(copy.data() + 64, memory.data(), 64, CopyDirection::device_to_device, two);
    EXPECT_THAT(kinds_of(device), IsEmpty());
    device.fill_async(memory.data(), std::byte{0}, 1, one);
    EXPECT_EQ(kinds_of(device), std::vector{FindingKind::race});
}

TEST_P(Conflicts, UseOnAStreamNotOrderedAfterTheAllocationIsARace) {
    const DeviceBuffer memory(device, 64, one, "memory");
    upload(memory.data(), 0, 64, two);
    EXPECT_EQ(kinds_of(device), std::vector{FindingKind::race});
}

TEST_P(Conflicts, ALoopWithoutAWaitIsOneFinding) {
    const DeviceBuffer memory(device, 64, one, "memory");
    order(one, two);
    for (int round = 0; round < 100; ++round) {
        for (const Stream* stream : {&one, &two}) {
            device.fill_async(memory.data(), std::byte{0}, 64, *stream);
        }
    }
    // one after two, and two after one
    EXPECT_EQ(kinds_of(device), (std::vector{FindingKind::race, FindingKind::race}));
}

TEST_P(Conflicts, TheHostMayReadButNotWriteWhatIsBeingUploaded) {
    const DeviceBuffer memory(device, 64, one, "memory");
    upload(memory.data(), 0, 32, one);
    static_cast<void>(pinned.read(0, 64));
    static_cast<void>(pinned.write(32, 32));
    EXPECT_THAT(kinds_of(device), IsEmpty());
    static_cast<void>(pinned.write(31, 1));
    ASSERT_EQ(kinds_of(device), std::vector{FindingKind::race});
    EXPECT_THAT(device.findings().at(0).text, HasSubstr("missing: record on one -> synchronize"));
    device.synchronize(one.ref());
    static_cast<void>(pinned.write(0, 64));
    EXPECT_EQ(device.findings().size(), 1U);
}

TEST_P(Conflicts, TheHostMayNotTouchWhatIsBeingDownloaded) {
    const DeviceBuffer memory(device, 64, one, "memory");
    upload(memory.data(), 0, 64, one);
    download(memory.data(), 0, 64, one);
    static_cast<void>(pinned.read(0, 1));
    EXPECT_EQ(kinds_of(device), std::vector{FindingKind::race});
    device.synchronize(one.ref());
    static_cast<void>(pinned.read(0, 64));
    EXPECT_EQ(device.findings().size(), 1U);
}

TEST_P(Conflicts, SynchronizingAnotherStreamDoesNotOrderTheHost) {
    const DeviceBuffer memory(device, 64, one, "memory");
    upload(memory.data(), 0, 64, one);
    download(memory.data(), 0, 64, one);
    device.synchronize(two.ref());
    static_cast<void>(pinned.read(0, 1));
    EXPECT_EQ(kinds_of(device), std::vector{FindingKind::race});
}

TEST_P(Conflicts, OrderIsInheritedThroughTheHost) {
    const DeviceBuffer memory(device, 64, one, "memory");
    upload(memory.data(), 0, 64, one);
    device.synchronize(one.ref());
    device.launch(add_kernel(memory.data(), 64, 1), two);
    EXPECT_THAT(kinds_of(device), IsEmpty());
}

TEST_P(Conflicts, FreeingMemoryThatAnotherStreamUsesIsInFlightReuse) {
    {
        const DeviceBuffer memory(device, 64, one, "memory");
        order(one, two);
        device.fill_async(memory.data(), std::byte{1}, 64, two);
    }
    ASSERT_EQ(kinds_of(device), std::vector{FindingKind::in_flight_reuse});
    EXPECT_THAT(device.findings().at(0).text,
                HasSubstr("is not ordered after fill on two (race_test.cpp:"));
}

TEST_P(Conflicts, FreeingInTheOrderOfTheLastUserIsFine) {
    for (int round = 0; round < 5; ++round) {
        DeviceBuffer memory(device, 64, one, "memory");
        order(one, two);
        device.fill_async(memory.data(), std::byte{1}, 64, two);
        memory.set_stream(two);
    }
    EXPECT_THAT(kinds_of(device), IsEmpty());
}

TEST_P(Conflicts, FreedBytesGoOnlyToStreamsOrderedAfterTheFree) {
    DeviceBuffer first(device, 64, one, "first");
    std::byte* const address = first.data();
    device.fill_async(address, std::byte{1}, 64, one);
    first = {};
    const DeviceBuffer elsewhere(device, 64, two, "elsewhere");
    EXPECT_NE(elsewhere.data(), address);
    order(one, two);
    const DeviceBuffer reused(device, 64, two, "reused");
    EXPECT_EQ(reused.data(), address);
    device.fill_async(reused.data(), std::byte{2}, 64, two);
    device.synchronize(two.ref());
    EXPECT_EQ(*device.inspect(reused.data()), std::byte{2});
    EXPECT_THAT(kinds_of(device), IsEmpty());
}

TEST_P(Conflicts, FreeingPinnedMemoryInUseIsInFlightReuse) {
    const DeviceBuffer memory(device, 64, one, "memory");
    upload(memory.data(), 0, 64, one);
    pinned = {};
    EXPECT_EQ(kinds_of(device), std::vector{FindingKind::in_flight_reuse});
    device.synchronize(one.ref());
}

}  // namespace
}  // namespace swaplab::sim
