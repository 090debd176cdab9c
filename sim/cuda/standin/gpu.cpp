#include "cuda/standin/gpu.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string_view>

namespace swaplab::sim {
namespace {

enum class Failing : std::uint8_t { at_once, late_too };

/// The calls that a fault may be of. Those that give back never fail by themselves.
constexpr std::pair<std::string_view, Failing> failing_calls[] = {
    {"cudaDeviceGetStreamPriorityRange", Failing::at_once},
    {"cudaDeviceReset", Failing::at_once},
    {"cudaDeviceSynchronize", Failing::at_once},
    {"cudaEventCreate", Failing::at_once},
    {"cudaEventCreateWithFlags", Failing::at_once},
    {"cudaEventElapsedTime", Failing::at_once},
    {"cudaEventQuery", Failing::at_once},
    {"cudaEventRecord", Failing::at_once},
    {"cudaEventRecordWithFlags", Failing::at_once},
    {"cudaEventSynchronize", Failing::at_once},
    {"cudaHostAlloc", Failing::at_once},
    {"cudaHostRegister", Failing::at_once},
    {"cudaLaunchHostFunc", Failing::late_too},
    {"cudaLaunchKernel", Failing::late_too},
    {"cudaMalloc", Failing::at_once},
    {"cudaMallocAsync", Failing::at_once},
    {"cudaMallocFromPoolAsync", Failing::at_once},
    {"cudaMallocHost", Failing::at_once},
    {"cudaMemGetInfo", Failing::at_once},
    {"cudaMemPoolCreate", Failing::at_once},
    {"cudaMemcpy", Failing::at_once},
    {"cudaMemcpyAsync", Failing::late_too},
    {"cudaMemcpyBatchAsync", Failing::late_too},
    {"cudaMemset", Failing::late_too},
    {"cudaMemsetAsync", Failing::late_too},
    {"cudaStreamCreate", Failing::at_once},
    {"cudaStreamCreateWithFlags", Failing::at_once},
    {"cudaStreamCreateWithPriority", Failing::at_once},
    {"cudaStreamGetDevice", Failing::at_once},
    {"cudaStreamGetFlags", Failing::at_once},
    {"cudaStreamGetId", Failing::at_once},
    {"cudaStreamGetPriority", Failing::at_once},
    {"cudaStreamQuery", Failing::at_once},
    {"cudaStreamSynchronize", Failing::at_once},
    {"cudaStreamWaitEvent", Failing::at_once},
};

void check_fault(const StandinFault& fault) {
    const auto* found = std::find_if(std::begin(failing_calls), std::end(failing_calls),
                                     [&](const auto& entry) { return entry.first == fault.call; });
    if (found == std::end(failing_calls)) {
        throw ArgumentError(fmt::format("\"{}\" is no call that a fault may be of", fault.call),
                            {{"call", fault.call}});
    }
    const bool may_be_late = found->second == Failing::late_too;
    if (fault.action != FaultAction::fail && (fault.action != FaultAction::late || !may_be_late)) {
        throw ArgumentError(fmt::format("a fault of {} may fail{}", fault.call,
                                        may_be_late ? ", at once or late" : ", and nothing else"),
                            {{"call", fault.call}});
    }
}

Fault to_fault(const StandinFault& fault) {
    Fault result;
    result.seam = "cuda";
    result.operation = fault.call;
    result.ordinal = fault.ordinal;
    result.rank = fault.device;
    result.bytes_min = fault.bytes_min;
    result.for_good = fault.for_good;
    return result;
}

SimulatedDeviceOptions device_options(const StandinOptions& options, int ordinal) {
    SimulatedDeviceOptions result = options.device;
    result.rank = ordinal;
    return result;
}

}  // namespace

void check_faults(const std::vector<StandinFault>& faults) {
    std::for_each(faults.begin(), faults.end(), check_fault);
}

Gpu::Gpu(const StandinOptions& options, int ordinal)
    : ordinal_(ordinal),
      total_bytes_(options.device.capacity_bytes),
      device_(device_options(options, ordinal)),
      injector_(ordinal),
      profile_(options.profile) {
    allocation_stream_.emplace(device_, "cudaMalloc");
    arm(options.faults);
}

Pool* Gpu::pool(std::size_t number) noexcept {
    return number < pools_.size() && !pools_[number].destroyed ? &pools_[number] : nullptr;
}

std::size_t Gpu::add_pool() {
    pools_.emplace_back();
    return pools_.size() - 1;
}

void Gpu::destroy_pool(std::size_t number) {
    pools_[number].destroyed = true;
    pools_[number].release_threshold_bytes = 0;
    pools_[number].release();
}

void Gpu::release_pools() {
    for (Pool& pool : pools_) {
        pool.release();
    }
}

std::uint64_t Gpu::unused_pool_bytes() const noexcept {
    return std::accumulate(pools_.begin(), pools_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Pool& pool) {
                               return sum + pool.reserved_bytes() - pool.used_bytes();
                           });
}

StreamEntry& Gpu::default_stream() {
    if (!default_stream_) {
        default_stream_.emplace(StreamEntry{this, device().default_stream()});
    }
    return *default_stream_;
}

StreamEntry& Gpu::thread_stream() {
    const std::thread::id thread = std::this_thread::get_id();
    const auto found = thread_streams_.find(thread);
    if (found != thread_streams_.end()) {
        return found->second;
    }
    const StreamRef ref = device().create_stream("cudaStreamPerThread", StreamKind::blocking);
    return thread_streams_.emplace(thread, StreamEntry{this, ref}).first->second;
}

void Gpu::note_memory(const void* begin, std::uint64_t bytes) {
    const auto* first = static_cast<const std::byte*>(begin);
    memory_begin_ = memory_begin_ == nullptr ? first : std::min(memory_begin_, first);
    memory_end_ = std::max(memory_end_, first + bytes);
}

bool Gpu::has_address(const void* pointer) const noexcept {
    return pointer >= memory_begin_ && pointer < memory_end_;
}

void Gpu::arm(const std::vector<StandinFault>& faults) {
    FaultPlan plan;
    armed_.clear();
    for (const StandinFault& fault : faults) {
        plan.push_back(to_fault(fault));
        armed_.emplace_back(plan.back(), fault);
    }
    injector_.arm(plan);
}

const StandinFault& Gpu::armed(const Fault& fault) const {
    return std::find_if(armed_.begin(), armed_.end(),
                        [&](const auto& entry) { return entry.first == fault; })
        ->second;
}

void Gpu::check() const {
    if (broken_ && !SWAPLAB_MUTANT("standin.error_not_sticky")) {
        throw Failure(*broken_);
    }
}

bool Gpu::admits(const CallInfo& call, CallSite site, StreamEntry* stream) {
    check();
    const Fault* struck = injector_.pass({"cuda", call.name, {}, call.bytes});
    if (struck == nullptr) {
        return true;
    }
    const StandinFault& fault = armed(*struck);
    const auto code = static_cast<cudaError_t>(fault.code);
    if (fault.action == FaultAction::late) {
        fail_late(call, site, *stream, code, "an injected fault");
        return false;
    }
    const std::string text =
        fmt::format("{} ({}) failed: an injected fault", call.name, format_site(site));
    if (is_sticky(code)) {
        break_down(code, text);
    }
    throw Failure(code, text);
}

void Gpu::fail_late(const CallInfo& call, CallSite site, StreamEntry& stream, cudaError_t code,
                    const std::string& reason) {
    late_code_ = code;
    const auto fail = [reason](const DeviceAccess&) { throw std::runtime_error(reason); };
    device().launch({call.name, {}, {}, fail, {}}, stream.ref, site);
    stream.note_issue();
}

void Gpu::break_down(cudaError_t code, const std::string& text) {
    broken_.emplace(code, text);
}

EventRef Gpu::mark(StreamEntry& entry, CallSite site) {
    if (!entry.mark) {
        entry.mark = device().create_event();
    }
    // The default stream also ends behind what was issued to others.
    const bool ends_there = default_stream_ && &entry == &*default_stream_
                                ? device().issue_point().operations == entry.marked_operations
                                : entry.marked;
    if (!ends_there) {
        device().record(*entry.mark, entry.ref, site);
        entry.marked = true;
        entry.marked_operations = device().issue_point().operations;
    }
    return *entry.mark;
}

void Gpu::synchronize(StreamEntry& entry, CallSite site) {
    device().synchronize(mark(entry, site), site);
    entry.busy = false;
    release_pools();
}

bool Gpu::query(StreamEntry& entry, CallSite site) {
    if (!device().query(mark(entry, site), site)) {
        return false;
    }
    entry.busy = false;
    return true;
}

std::uint64_t Gpu::end_picoseconds(std::uint64_t operation) {
    if (times_.size() != device().issue_point().operations) {
        const TimedGraph graph = device().timed_graph();
        times_ = timeline({&graph, 1}, profile_).front();
    }
    return times_[operation].end_picoseconds;
}

void Gpu::synchronize_others(CallSite site) {
    synchronize(default_stream(), site);
    for (auto& [thread, entry] : thread_streams_) {
        synchronize(entry, site);
    }
    if (destroyed_) {
        synchronize(*destroyed_, site);
    }
}

void Gpu::destroy(StreamEntry& entry) {
    if (entry.busy && !SWAPLAB_MUTANT("standin.destroyed_not_awaited")) {
        unless_lost([&] {
            if (!destroyed_) {
                destroyed_.emplace(StreamEntry{this, device().create_stream("destroyed streams")});
            }
            device().wait(destroyed_->ref, mark(entry, {}));
            destroyed_->note_issue();
        });
    }
    if (entry.mark) {
        device().destroy_event(*entry.mark);
    }
    device().destroy_stream(entry.ref);
}

}  // namespace swaplab::sim
