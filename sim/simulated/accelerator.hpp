#pragma once

/// The simulated device itself. Its parts: arena (bytes), address_space (which offsets are free),
/// allocations (who owns which address), scheduler (what runs when), operation_log (what was
/// issued). All order between operations is known when they are issued, so every check is made
/// then and holds for every schedule; the schedule only decides what the bytes are.

#include "simulated/address_space.hpp"
#include "simulated/allocations.hpp"
#include "simulated/arena.hpp"
#include "simulated/clock.hpp"
#include "simulated/handle_table.hpp"
#include "simulated/host_trap.hpp"
#include "simulated/operation_log.hpp"
#include "simulated/scheduler.hpp"

#include "swaplab/sim/simulated_device.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
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
    void deallocate(void* pointer, StreamRef stream, CallSite site) noexcept override;
    void* allocate_pinned(std::uint64_t bytes, std::string_view tag, CallSite site) override;
    void deallocate_pinned(void* pointer, CallSite site) noexcept override;

    StreamRef create_stream(std::string_view name) override;
    void destroy_stream(StreamRef stream) noexcept override;
    EventRef create_event() override;
    void destroy_event(EventRef event) noexcept override;

    void copy_async(void* destination, const void* source, std::uint64_t bytes,
                    CopyDirection direction, StreamRef stream, CallSite site) override;
    void fill_async(void* destination, std::byte value, std::uint64_t bytes, StreamRef stream,
                    CallSite site) override;
    void launch(Kernel kernel, StreamRef stream, CallSite site) override;

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
    [[nodiscard]] std::uint64_t execution_digest() const noexcept override {
        return scheduler_.digest();
    }
    void finish() override;
    [[nodiscard]] const std::byte* inspect(const void* device_pointer) const override;

  private:
    struct StreamState {
        LaneId lane = 0;
        VectorClock clock;  ///< what the next operation is ordered after
    };
    struct EventState {
        Epoch mark;         ///< sequence 0: never recorded
        VectorClock clock;  ///< everything ordered before the mark, and the mark
        bool awaited = false;
        CallSite site;
    };
    struct FreeAligned {
        void operator()(std::byte* memory) const noexcept;
    };
    using PinnedMemory = std::unique_ptr<std::byte, FreeAligned>;
    /// Bytes of one allocation that a call names.
    struct Range {
        Allocation* allocation = nullptr;
        std::uint64_t offset_bytes = 0;
        std::uint64_t bytes = 0;
    };
    struct Use {
        Range range;
        Access access;
    };
    struct Caller {
        std::string_view operation;
        CallSite site;
    };

    [[nodiscard]] StreamState* find_stream(StreamRef stream) noexcept;
    [[nodiscard]] StreamState& stream_state(StreamRef stream, const Caller& caller);
    [[nodiscard]] EventState& event_state(EventRef event, const Caller& caller);
    [[nodiscard]] Range device_range(const void* pointer, std::uint64_t bytes,
                                     const Caller& caller);
    [[nodiscard]] Range pinned_range(const void* pointer, std::uint64_t bytes,
                                     const Caller& caller);
    [[nodiscard]] Range range_in(Allocations& allocations, const void* pointer, std::uint64_t bytes,
                                 const Caller& caller) const;
    [[noreturn]] void refuse(const Caller& caller, const std::string& reason,
                             ErrorFields fields = {}) const;
    void check_capacity(std::uint64_t bytes, std::uint64_t rounded_bytes, std::string_view tag,
                        CallSite site) const;
    [[nodiscard]] std::uint64_t take_region(std::uint64_t rounded_bytes, StreamState& stream);

    void free_region(Allocation& allocation, StreamState& stream, CallSite site);
    void find_in_flight(const Allocation& allocation, const VectorClock& clock,
                        std::uint64_t operation);

    /// Logs `event` and queues `work`.
    Touch issue(StreamState& stream, TraceEvent event, Work work, CallSite site, Epoch after = {});
    /// Checks what an operation just issued to `stream` uses, and remembers it.
    void use(const StreamState& stream, Touch touch, std::span<const Use> uses);
    void check_use(Touch touch, const Use& use, const VectorClock& clock);
    [[nodiscard]] TraceEvent trace_event(std::string operation, const StreamState& stream) const;
    [[nodiscard]] TraceEvent trace_event(std::string operation, const StreamState& stream,
                                         const Range& range) const;
    void execute(const Work& work);
    void await(EventState& event);
    std::exception_ptr host_touched(const void* address, Kind kind) override;

    void add_finding(FindingKind kind, const std::string& text, ErrorFields fields);
    void find_conflict(FindingKind kind, const Conflict& conflict, std::uint64_t later,
                       const Allocation& allocation);
    void find_unwritten(Span span, std::uint64_t reader, const Allocation& allocation);
    void find_not_device_memory(const void* pointer, const Caller& caller);
    void find_unwaited(const EventState& event);
    void find_pending_work();
    void find_leaks();
    void find_wrong_free(const Allocations& allocations, const void* pointer, CallSite site);
    void release_pinned();

    SimulatedDeviceOptions options_;
    MemoryLedger ledger_;
    Arena arena_;
    AddressSpace address_space_;
    Scheduler scheduler_;
    OperationLog log_;
    VectorClock host_;  ///< what the host has waited for
    HandleTable<StreamState> streams_;
    HandleTable<EventState> events_;
    Allocations device_memory_;
    Allocations pinned_memory_;
    std::map<std::uint64_t, PinnedMemory> pinned_blocks_;
    std::vector<PinnedMemory> pinned_unused_;  ///< freed, but pending work may still touch it
    std::map<LaneId, Touch> newest_data_;      ///< last operation of each lane that moves bytes
    std::vector<Finding> findings_;
    /// Kind and texts of what was found: a loop without a wait is one finding, not thousands.
    std::set<std::string> found_;
    TouchWatch touch_watch_;
    bool finished_ = false;
};

}  // namespace swaplab::sim
