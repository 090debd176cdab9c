#include "simulated/accelerator.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>
#include <variant>

namespace swaplab::sim {
namespace {

/// Holes that streams may not use yet and fragments take addresses, not memory.
constexpr std::uint64_t addresses_per_byte = 4;
constexpr std::uint64_t capacity_bytes_max = std::uint64_t{1} << 43U;

std::uint64_t arena_bytes(const SimulatedDeviceOptions& options) {
    if (options.capacity_bytes > capacity_bytes_max) {
        throw ArgumentError(
            fmt::format("a simulated device of {} is too large; at most {}",
                        format_bytes(options.capacity_bytes), format_bytes(capacity_bytes_max)),
            {{"expected", std::to_string(capacity_bytes_max)},
             {"found", std::to_string(options.capacity_bytes)}});
    }
    if (options.context_bytes > options.capacity_bytes) {
        throw ArgumentError(
            fmt::format("a context of {} does not fit into a simulated device of {}",
                        format_bytes(options.context_bytes), format_bytes(options.capacity_bytes)),
            {{"expected", fmt::format("at most {} B", options.capacity_bytes)},
             {"found", fmt::format("{} B", options.context_bytes)}});
    }
    return options.capacity_bytes * addresses_per_byte;
}

}  // namespace

std::string_view name_of(Schedule schedule) noexcept {
    switch (schedule) {
        case Schedule::fifo:
            return "fifo";
        case Schedule::random:
            return "random";
        case Schedule::latest:
            return "latest";
        case Schedule::pct:
            return "pct";
        case Schedule::replay:
            return "replay";
        case Schedule::chosen:
            return "chosen";
    }
    return "fifo";
}

std::optional<Schedule> schedule_from_name(std::string_view name) noexcept {
    for (const Schedule schedule :
         {Schedule::fifo, Schedule::random, Schedule::latest, Schedule::pct}) {
        if (name == name_of(schedule)) {
            return schedule;
        }
    }
    return std::nullopt;
}

std::string_view name_of(AllocationPolicy policy) noexcept {
    switch (policy) {
        case AllocationPolicy::raw:
            return "raw";
        case AllocationPolicy::caching:
            return "caching";
        case AllocationPolicy::stream_ordered:
            return "stream_ordered";
    }
    return "raw";
}

std::optional<AllocationPolicy> allocation_policy_from_name(std::string_view name) noexcept {
    for (const AllocationPolicy policy :
         {AllocationPolicy::raw, AllocationPolicy::caching, AllocationPolicy::stream_ordered}) {
        if (name == name_of(policy)) {
            return policy;
        }
    }
    return std::nullopt;
}

std::string_view name_of(PinnedPolicy policy) noexcept {
    return policy == PinnedPolicy::exact ? "exact" : "power_of_two";
}

std::optional<PinnedPolicy> pinned_policy_from_name(std::string_view name) noexcept {
    for (const PinnedPolicy policy : {PinnedPolicy::exact, PinnedPolicy::power_of_two}) {
        if (name == name_of(policy)) {
            return policy;
        }
    }
    return std::nullopt;
}

std::unique_ptr<SimulatedDevice> make_simulated_device(const SimulatedDeviceOptions& options) {
    return std::make_unique<Accelerator>(options);
}

Accelerator::Accelerator(const SimulatedDeviceOptions& options)
    : SimulatedDevice(options.rank, ledger_),
      options_(options),
      arena_(arena_bytes(options)),
      address_space_(arena_.bytes()),
      scheduler_(options, log_, [this](const Operation& operation) { execute(operation); }),
      device_memory_(device_alignment_bytes),
      pinned_memory_(pinned_alignment_bytes),
      launches_(arena_.user(), arena_.bytes(), arena_.alias_distance_bytes(),
                options.check_accesses ? Launches::Check::on : Launches::Check::off,
                [this](const void* pointer) { find_undeclared(pointer); }),
      touch_watch_(arena_.user(), arena_.bytes(), *this) {
    if (options.allocation != AllocationPolicy::raw) {
        pool_.emplace(options, address_space_);
    }
    if (options.page_guards && options.check_accesses) {
        page_guard_.emplace(static_cast<TouchListener&>(*this));
    }
}

Accelerator::~Accelerator() = default;

MemoryInfo Accelerator::memory_info() const {
    const std::uint64_t taken_bytes = reserved_bytes() + outside_bytes_;
    return {options_.capacity_bytes,
            options_.capacity_bytes - options_.context_bytes - taken_bytes, taken_bytes};
}

const std::byte* Accelerator::inspect(const void* device_pointer) const {
    return static_cast<const std::byte*>(device_pointer) + arena_.alias_distance_bytes();
}

ExecutionRecord Accelerator::execution_record() const {
    ExecutionRecord record;
    for (const std::uint64_t id : scheduler_.order()) {
        record.push_back({id, log_.digest(id)});
    }
    return record;
}

void Accelerator::finish() {
    if (std::exchange(finished_, true)) {
        return;
    }
    judge_touches();
    if (!failure_) {
        find_pending_work();
    }
    scheduler_.run_all();
    scheduler_.check_replayed();
    find_leaks();
    events_.for_each([this](const EventState& event) { find_unwaited(event, {}); });
}

void Accelerator::refuse(const Caller& caller, const std::string& reason,
                         ErrorFields fields) const {
    throw refusal(rank(), caller, reason, std::move(fields));
}

Accelerator::StreamState* Accelerator::find_stream(StreamRef stream) noexcept {
    return &stream.device() == this ? streams_.find(stream.handle()) : nullptr;
}

Accelerator::StreamState& Accelerator::stream_state(StreamRef stream, const Caller& caller) {
    check_usable(caller);
    StreamState* state = find_stream(stream);
    if (state == nullptr) {
        refuse_bad(caller, "the stream is not a live stream of this device");
    }
    return *state;
}

Accelerator::EventState* Accelerator::find_event(EventRef event) noexcept {
    return &event.device() == this ? events_.find(event.handle()) : nullptr;
}

Accelerator::EventState& Accelerator::event_state(EventRef event, const Caller& caller) {
    check_usable(caller);
    EventState* state = find_event(event);
    if (state == nullptr) {
        refuse_bad(caller, "the event is not a live event of this device");
    }
    return *state;
}

OperationRecord Accelerator::record_of(OperationKind kind, CallSite site, const Range& range) {
    OperationRecord record;
    record.kind = kind;
    record.file = site.file;
    record.line = site.line;
    if (range.allocation != nullptr) {
        record.tag = range.allocation->tag;
        record.place = range.offset_bytes;
        record.bytes = range.bytes;
    }
    return record;
}

void Accelerator::follow_host(StreamState& stream) {
    if (stream.host_version != host_version_) {
        stream.clock.join(host_);
        stream.host_version = host_version_;
    }
}

void Accelerator::host_waited_for(Epoch mark, const VectorClock& clock) {
    log_.add_host_wait(mark);
    host_.join(clock);
    ++host_version_;
    if (page_guard_) {
        page_guard_->lower(host_);
    }
}

Touch Accelerator::issue(StreamState& stream, OperationRecord& record, const Work& work) {
    follow_default(stream, record.site());
    return enqueue(stream, record, work);
}

Touch Accelerator::enqueue(StreamState& stream, OperationRecord& record, const Work& work) {
    const Epoch epoch = scheduler_.next_epoch(stream.lane);
    record.lane = epoch.lane;
    record.sequence = epoch.sequence;
    record.stream = stream.name;
    const Touch touch{epoch, log_.add(record)};
    follow_host(stream);
    stream.clock.advance(epoch);
    scheduler_.issue(epoch.lane, {touch.operation, record.after(), work});
    return touch;
}

void Accelerator::use(const StreamState& stream, Touch touch, std::span<const Use> uses) {
    if (options_.check_accesses) {
        for (const Use& each : uses) {
            use(stream.clock, touch, each);
            guard(touch, each);
        }
    }
    if (touch.epoch.lane >= newest_data_.size()) {
        newest_data_.resize(touch.epoch.lane + std::size_t{1});
    }
    newest_data_[touch.epoch.lane] = {touch, {}};
}

void Accelerator::use(const VectorClock& clock, Touch touch, const Use& use) {
    Allocation& allocation = *use.range.allocation;
    const Span span{use.range.offset_bytes, use.range.offset_bytes + use.range.bytes};
    const Shadow::Verdict verdict = use.access == Access::read
                                        ? allocation.shadow.read(span, touch, clock)
                                        : allocation.shadow.write(span, touch, clock);
    if (verdict.conflict && !SWAPLAB_MUTANT("sim.race_unchecked")) {
        find_conflict(FindingKind::race, *verdict.conflict, touch.operation, allocation);
    }
    if (verdict.unwritten && !SWAPLAB_MUTANT("sim.unwritten_unchecked")) {
        find_unwritten(*verdict.unwritten, touch.operation, allocation);
    }
}

void Accelerator::guard(Touch touch, const Use& use) {
    const Allocation& allocation = *use.range.allocation;
    const std::uint64_t begin = allocation.address + use.range.offset_bytes;
    if (page_guard_ && allocation.block != nullptr && !SWAPLAB_MUTANT("guard.not_raised")) {
        page_guard_->raise(touch, {begin, begin + use.range.bytes}, use.access);
    }
}

void Accelerator::begin_downloads() {
    if (options_.poison && !SWAPLAB_MUTANT("sim.no_in_flight_poison")) {
        scheduler_.begin_next([this](const Operation& next) {
            const auto* copy = std::get_if<CopyWork>(&next.work);
            if (copy != nullptr && copy->to_host) {
                const auto passage = pass(next);
                poison_destination(*copy);
            }
        });
    }
}

void Accelerator::execute(const Operation& operation) {
    running_ = operation.id;
    if (failure_) {
        return skip(operation.work);
    }
    const auto passage = pass(operation);
    try {
        run(operation.work, context());
    } catch (const std::exception& error) {
        failure_ = {log_.operation(operation.id), log_[operation.id].site(), error.what()};
    }
}

std::unique_ptr<PageGuard::Passage> Accelerator::pass(const Operation& operation) {
    return page_guard_ ? std::make_unique<PageGuard::Passage>(*page_guard_, operation.id) : nullptr;
}

// Memory is given back also on a device that is lost.
void Accelerator::skip(const Work& work) {
    if (const auto* kernel = std::get_if<KernelWork>(&work)) {
        launches_.drop(kernel->launch);
    } else if (std::holds_alternative<AllocateWork>(work) ||
               std::holds_alternative<FreeWork>(work)) {
        run(work, context());
    }
}

}  // namespace swaplab::sim
