#pragma once

/// The simulated device itself. Its parts: arena (bytes), address_space (which offsets are free),
/// allocations (who owns which address), scheduler (what runs when), operation_log (what was
/// issued). All order between operations is known when they are issued, so every check is made
/// then and holds for every schedule; the schedule only decides what the bytes are.

#include "device/caller.hpp"
#include "device/late_failure.hpp"
#include "simulated/address_space.hpp"
#include "simulated/allocations.hpp"
#include "simulated/arena.hpp"
#include "simulated/clock.hpp"
#include "simulated/device_peak.hpp"
#include "simulated/device_timeline.hpp"
#include "simulated/handle_table.hpp"
#include "simulated/host_trap.hpp"
#include "simulated/launches.hpp"
#include "simulated/operation_log.hpp"
#include "simulated/page_guard.hpp"
#include "simulated/scheduler.hpp"
#include "simulated/segment_pool.hpp"

#include "swaplab/sim/simulated_device.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::sim {

class Accelerator final : public SimulatedDevice, private TouchListener {
  public:
    explicit Accelerator(const SimulatedDeviceOptions& options);
    ~Accelerator() override;

    void* allocate(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                   CallSite site) override;
    void* allocate_outside_pool(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                                CallSite site) override;
    void deallocate(void* pointer, StreamRef stream, CallSite site) noexcept override;
    void* allocate_pinned(std::uint64_t bytes, std::string_view tag, CallSite site) override;
    /// Counts whole pages of the caller's own memory as pinned until deallocate_pinned(), which
    /// leaves it to the caller. None of them may be pinned already.
    void register_pinned(void* pages, std::uint64_t bytes, std::string_view tag, CallSite site);
    void deallocate_pinned(void* pointer, CallSite site) noexcept override;

    StreamRef create_stream(std::string_view name, StreamKind kind) override;
    void destroy_stream(StreamRef stream, CallSite site) noexcept override;
    StreamRef default_stream() override;
    EventRef create_event() override;
    void destroy_event(EventRef event, CallSite site) noexcept override;

    void copy_async(void* destination, const void* source, std::uint64_t bytes,
                    CopyDirection direction, StreamRef stream, CallSite site) override;
    void copy_pageable(void* destination, const void* source, std::uint64_t bytes,
                       CopyDirection direction, StreamRef stream, CallSite site) override;
    void fill_async(void* destination, std::byte value, std::uint64_t bytes, StreamRef stream,
                    CallSite site) override;
    void launch(Kernel kernel, StreamRef stream, CallSite site) override;
    void call_host(HostFunction function, StreamRef stream, CallSite site) override;

    void record(EventRef event, StreamRef stream, CallSite site) override;
    void wait(StreamRef stream, EventRef event, CallSite site) override;
    void synchronize(EventRef event, CallSite site) override;
    bool query(EventRef event, CallSite site) override;
    void host_access(const void* pointer, std::uint64_t bytes, Access access,
                     CallSite site) override;
    [[nodiscard]] MemoryInfo memory_info() const override;

    [[nodiscard]] const std::vector<Finding>& findings() const noexcept override {
        return findings_;
    }
    [[nodiscard]] const std::vector<TraceEvent>& trace() const noexcept override {
        return log_.trace();
    }
    [[nodiscard]] AllocatorStats allocator_stats() const noexcept override;
    void restart_reserved_peaks() noexcept override;
    [[nodiscard]] std::uint64_t execution_digest() const noexcept override {
        return scheduler_.digest();
    }
    [[nodiscard]] ExecutionRecord execution_record() const override;
    [[nodiscard]] std::vector<bool> chances() const override { return scheduler_.chances(); }
    [[nodiscard]] IssuePoint issue_point() const noexcept override {
        return {log_.size(), log_.host_waits().size()};
    }
    [[nodiscard]] DevicePeak worst_peak(Size size, IssuePoint begin) const override {
        return device_peak(log_, begin, size);
    }
    [[nodiscard]] TimedGraph timed_graph() const override {
        return sim::timed_graph(log_, launch_bytes_);
    }
    void finish() override;
    [[nodiscard]] const std::byte* inspect(const void* device_pointer) const override;

  private:
    struct StreamState {
        LaneId lane = 0;
        NameId name = 0;
        VectorClock clock;               ///< what the next operation is ordered after
        std::uint64_t host_version = 0;  ///< of the host's clock when it was joined last
        StreamKind kind = StreamKind::non_blocking;
        std::uint64_t serial = 0;  ///< never reused
    };
    /// A place in the order of one lane, and everything ordered before it.
    struct Mark {
        Epoch epoch;
        VectorClock clock;
    };
    struct EventState {
        Epoch mark;         ///< sequence 0: never recorded
        VectorClock clock;  ///< everything ordered before the mark, and the mark
        bool awaited = false;
        CallSite site;
    };
    /// Bytes of one allocation that a call names.
    struct Range {
        Allocation* allocation = nullptr;
        std::uint64_t offset_bytes = 0;
        std::uint64_t bytes = 0;
    };
    struct Request {
        std::uint64_t bytes = 0;
        std::uint64_t rounded_bytes = 0;
        std::string_view tag;
        CallSite site;
    };
    struct Region {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };
    /// Memory freed on another stream than its own, which the caching allocator holds back.
    struct Deferred {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
        Mark freed;
    };
    struct PinnedBlock {
        std::uint64_t rounded_bytes = 0;
        PinnedMemory memory;
    };
    /// The last operation of a lane that moves bytes.
    struct NewestData {
        Touch touch;
        CallSite destroyed_at;  ///< of its stream; line 0: it lives
    };
    struct Use {
        Range range;
        Access access;
    };

    [[nodiscard]] StreamState* find_stream(StreamRef stream) noexcept;
    [[nodiscard]] EventState* find_event(EventRef event) noexcept;
    [[nodiscard]] StreamState& stream_state(StreamRef stream, const Caller& caller);
    [[nodiscard]] EventState& event_state(EventRef event, const Caller& caller);
    [[nodiscard]] Range device_range(const void* pointer, std::uint64_t bytes,
                                     const Caller& caller);
    [[nodiscard]] Range pinned_range(const void* pointer, std::uint64_t bytes,
                                     const Caller& caller);
    [[nodiscard]] Range range_in(Allocations& allocations, const void* pointer, std::uint64_t bytes,
                                 const Caller& caller);
    /// A finding, and a refusal.
    [[noreturn]] void refuse_bad(const Caller& caller, const std::string& reason,
                                 ErrorFields fields = {});
    [[noreturn]] void refuse(const Caller& caller, const std::string& reason,
                             ErrorFields fields = {}) const;
    [[nodiscard]] bool fits(const Request& request) const;
    [[noreturn]] void run_out(const Request& request, const StreamState& stream) const;
    [[nodiscard]] OutOfDeviceMemory::Report report_of(MemoryKind kind, std::uint64_t bytes,
                                                      std::uint64_t rounded_bytes,
                                                      std::string_view tag) const;
    [[nodiscard]] StreamState open(NameId name, StreamKind kind);
    [[nodiscard]] Region take_region(const Request& request, StreamState& stream);
    [[nodiscard]] Region take_from_pool(const Request& request, StreamState& stream);
    [[nodiscard]] Region take_outside(const Request& request, StreamState& stream);
    [[nodiscard]] std::uint64_t reserved_bytes() const noexcept;
    [[nodiscard]] void* begin_allocation(const Request& request, StreamState& stream, Region region,
                                         bool outside);
    [[nodiscard]] StreamState& stream_to_allocate_on(std::uint64_t bytes, StreamRef stream,
                                                     const Caller& caller);
    [[nodiscard]] std::optional<SegmentPool::Region> take_cached(const SegmentPool::Wish& wish,
                                                                 CallSite site);
    [[nodiscard]] std::optional<SegmentPool::Region> take_ordered(const SegmentPool::Wish& wish,
                                                                  StreamState& stream,
                                                                  CallSite site);
    [[nodiscard]] bool was_freed(const SegmentPool::Block& block) const noexcept;
    void give_back(const Allocation& allocation, const StreamState& stream, Epoch at);
    void return_deferred();
    void trim_pool();
    void wait_for_everything(CallSite site);
    [[nodiscard]] std::uint64_t round_pinned(std::uint64_t bytes) const noexcept;
    [[nodiscard]] PinnedMemory take_cached_pinned(std::uint64_t rounded_bytes);
    [[nodiscard]] PinnedMemory take_pinned(std::uint64_t bytes, std::uint64_t rounded_bytes,
                                           std::string_view tag, CallSite site);
    void check_pinned_quota(std::uint64_t bytes, std::uint64_t rounded_bytes, std::string_view tag,
                            CallSite site) const;

    /// Refuses calls made by operations, and all once an operation has failed.
    void check_usable(const Caller& caller);
    [[nodiscard]] bool is_reentrant(const Caller& caller);
    [[noreturn]] void refuse_reentrant(const Caller& caller) const;
    void report_failure(const Caller& caller) const;
    /// Adds to uses_ what a launch or host function declares.
    void declare(Allocations& memory, const std::vector<ByteRange>& ranges, Access access,
                 const Caller& caller);
    void upload_pageable(const Caller& caller, StreamState& stream, const Range& to,
                         const void* source);
    void download_pageable(const Caller& caller, StreamState& stream, const Range& from,
                           void* destination);

    Allocation& add_pinned(std::uint64_t address, const Request& request);
    void reserve_pinned(std::uint64_t rounded_bytes) noexcept;
    void free_region(Allocation& allocation, StreamState& stream, CallSite site);
    void follow_host(StreamState& stream);
    void host_waited_for(Epoch mark, const VectorClock& clock);
    void find_in_flight(const Allocation& allocation, const VectorClock& clock,
                        std::uint64_t operation);

    /// Logs `record` as the next operation of `stream` and queues `work`, behind what the stream
    /// must wait for.
    Touch issue(StreamState& stream, OperationRecord& record, const Work& work);
    Touch enqueue(StreamState& stream, OperationRecord& record, const Work& work);
    /// Waits between the default stream and blocking ones.
    void follow_default(StreamState& stream, CallSite site);
    void follow(StreamState& stream, const Mark& mark, CallSite site);
    [[nodiscard]] Mark end_of(const StreamState& stream) const {
        return {scheduler_.last_epoch(stream.lane), stream.clock};
    }
    /// Checks what an operation just issued to `stream` uses, and remembers it.
    void use(const StreamState& stream, Touch touch, std::span<const Use> uses);
    void use(const VectorClock& clock, Touch touch, const Use& use);
    void guard(Touch touch, const Use& use);
    [[nodiscard]] std::unique_ptr<PageGuard::Passage> pass(const Operation& operation);
    [[nodiscard]] static OperationRecord record_of(OperationKind kind, CallSite site,
                                                   const Range& range);
    void execute(const Operation& operation);
    void skip(const Work& work);
    [[nodiscard]] ExecutionContext context() noexcept {
        return {ledger_, launches_, options_.poison};
    }
    /// Poisons where downloads that are next in their stream will write. Everything that may read
    /// the old bytes is ordered before them and has run.
    void begin_downloads();
    void await(EventState& event, const Caller& caller);
    /// The host has waited for what pending work needs.
    void host_reached(Epoch mark, const VectorClock& clock);
    bool opens(const void* address, Kind kind) noexcept override;
    std::exception_ptr host_touched(const void* address, Kind kind) override;
    /// Judges what the host did to pinned memory without a scope since the last call.
    void judge_touches();
    void find_unscoped(const PageGuard::HostTouch& touch);

    [[nodiscard]] const std::string& tag_of(const Allocation& allocation) const {
        return log_.names()[allocation.tag];
    }
    void find_undeclared(const void* device_pointer);
    void add_finding(FindingKind kind, const std::string& text, ErrorFields fields);
    void find_conflict(FindingKind kind, const Conflict& conflict, std::uint64_t later,
                       const Allocation& allocation);
    void find_unwritten(Span span, std::uint64_t reader, const Allocation& allocation);
    void find_use_after_free(const Allocation& freed, const Caller& caller);
    void find_not_device_memory(const void* pointer, const Caller& caller);
    void find_reentrant(const Caller& caller);
    void find_not_destroyable(std::string_view what, const Caller& caller);
    /// `destroyed_at`: line 0 for an event that lives.
    void find_unwaited(const EventState& event, CallSite destroyed_at);
    void find_pending_work();
    void find_leaks();
    void find_wrong_free(const Allocations& allocations, const void* pointer, CallSite site);
    void release_pinned();

    SimulatedDeviceOptions options_;
    MemoryLedger ledger_;
    Arena arena_;
    AddressSpace address_space_;
    std::optional<SegmentPool> pool_;  ///< of policies that are not raw
    std::vector<Deferred> deferred_;
    std::uint64_t deferred_bytes_ = 0;
    std::uint64_t outside_bytes_ = 0;  ///< beside the pool
    AllocatorStats stats_;             ///< what is counted here and nowhere else
    std::uint64_t streams_opened_ = 0;
    OperationLog log_;
    Scheduler scheduler_;
    VectorClock host_;                ///< what the host has waited for
    std::uint64_t host_version_ = 0;  ///< changes when host_ does
    HandleTable<StreamState> streams_;
    std::optional<std::uint64_t> default_stream_;  ///< a handle, from its first use on
    std::vector<Mark> gone_;  ///< ends of destroyed blocking streams, for the default stream
    HandleTable<EventState> events_;
    Allocations device_memory_;
    Allocations pinned_memory_;
    std::map<std::uint64_t, std::vector<PinnedMemory>> pinned_cached_;  ///< by rounded size
    std::vector<PinnedBlock> pinned_unused_;   ///< freed, but pending work may still touch it
    std::optional<PageGuard> page_guard_;      ///< where asked for; opens pages before they go
    std::vector<NewestData> newest_data_;      ///< by lane
    Launches launches_;                        ///< that have not run
    std::vector<std::uint64_t> launch_bytes_;  ///< of each launch issued, read and written
    std::vector<Use> uses_;                    ///< of the launch being issued; kept for its memory
    std::uint64_t running_ = 0;                ///< the operation inside execute()
    std::optional<LateFailure> failure_;       ///< the first; nothing has run since
    std::vector<Finding> findings_;
    /// Kind and texts of what was found: a loop without a wait is one finding, not thousands.
    std::set<std::string> found_;
    TouchWatch touch_watch_;
    bool finished_ = false;
};

}  // namespace swaplab::sim
