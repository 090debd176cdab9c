#include "cuda/standin/runtime.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <unistd.h>

namespace swaplab::sim {
namespace {

// Handles are small steps from places where no memory is, apart by kind: one kind is never taken
// for the other, and 0 to 2 stay what CUDA says.
constexpr std::uintptr_t handle_step = 16;
constexpr std::uintptr_t first_stream = 0x10000;
constexpr std::uintptr_t first_event = 0x40000000;

template <class Handle>
Handle to_handle(std::uintptr_t first, std::uint64_t index) {
    return reinterpret_cast<Handle>(first + index * handle_step);
}

/// A number that no table has for what is no handle.
template <class Handle>
std::uint64_t to_index(std::uintptr_t first, Handle handle) {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(handle) - first;
    return offset % handle_step == 0 ? offset / handle_step : ~std::uint64_t{0};
}

constexpr int driver_version_min = 13000;

}  // namespace

// Never destroyed: modules are unregistered when the process exits, after everything else.
Runtime& Runtime::instance() {
    static auto* const runtime = new Runtime;
    return *runtime;
}

ThreadState& Runtime::thread() noexcept {
    static thread_local ThreadState state;
    return state;
}

void Runtime::configure(const StandinOptions& options) {
    const std::lock_guard lock(mutex_);
    if (options.device_count < 0 || options.device_count > device_count_max) {
        throw ArgumentError(
            fmt::format("{} devices; 0 to {} are possible", options.device_count, device_count_max),
            {{"expected", fmt::format("0 to {}", device_count_max)},
             {"found", std::to_string(options.device_count)}});
    }
    const std::uint64_t context_bytes = options.device.context_bytes;
    if (context_bytes >= options.device.capacity_bytes) {
        throw ArgumentError(
            fmt::format("a context of {} B leaves nothing of {} B", context_bytes,
                        options.device.capacity_bytes),
            {{"expected", fmt::format("less than {} B", options.device.capacity_bytes)},
             {"found", fmt::format("{} B", context_bytes)}});
    }
    check_faults(options.faults);
    if (process_ != ::getpid()) {
        for (auto& [ordinal, gpu] : gpus_) {
            static_cast<void>(gpu.release());  // the parent's, which still uses their memory
        }
    }
    blocks_.clear();
    streams_ = {};
    events_ = {};
    gpus_.clear();
    options_ = options;
    thread() = {};
}

void Runtime::add_kernel(KernelTwin twin) {
    const std::lock_guard lock(mutex_);
    twins_[twin.stub] = std::move(twin);
}

SimulatedDevice& Runtime::device(int ordinal) {
    const std::lock_guard lock(mutex_);
    if (ordinal < 0 || ordinal >= options_.device_count) {
        throw ArgumentError(
            fmt::format("no device {}; there are {}", ordinal, options_.device_count),
            {{"found", std::to_string(ordinal)}});
    }
    return gpu(ordinal).device();
}

void Runtime::announce(std::string_view tag, CallSite site) {
    thread().tag = tag;
    thread().site = site;
}

void Runtime::host_access(const void* pointer, std::uint64_t bytes, Access access, CallSite site) {
    const std::lock_guard lock(mutex_);
    const Block* block = blocks_.find(pointer);
    if (block != nullptr && block->is_host()) {
        block->gpu->device().host_access(pointer, bytes, access, site);
    }
}

void Runtime::arm(const std::vector<StandinFault>& faults) {
    const std::lock_guard lock(mutex_);
    check_faults(faults);
    options_.faults = faults;
    for (auto& [ordinal, gpu] : gpus_) {
        gpu->arm(faults);
    }
}

std::string Runtime::last_error_text() const {
    return thread().last_error_text;
}

void Runtime::check_driver() const {
    if (options_.driver_version < driver_version_min) {
        throw Failure(cudaErrorInsufficientDriver,
                      fmt::format("driver of CUDA {}, {} is needed", options_.driver_version,
                                  driver_version_min));
    }
}

void Runtime::check_ordinal(int ordinal) const {
    require(options_.device_count > 0, cudaErrorNoDevice, "there is no device");
    require(ordinal >= 0 && ordinal < options_.device_count, cudaErrorInvalidDevice,
            "no device has that number");
}

Gpu& Runtime::gpu(int ordinal) {
    check_ordinal(ordinal);
    const int process = ::getpid();
    if (gpus_.empty()) {
        process_ = process;
    }
    require(process_ == process || SWAPLAB_MUTANT("standin.fork_unchecked"),
            cudaErrorInitializationError,
            "a process that used CUDA was forked; use it in the child alone");
    std::unique_ptr<Gpu>& gpu = gpus_[ordinal];
    if (gpu == nullptr) {
        gpu = std::make_unique<Gpu>(options_, ordinal);
    }
    return *gpu;
}

bool Runtime::is_device_address(const void* pointer) const {
    return std::any_of(gpus_.begin(), gpus_.end(),
                       [&](const auto& entry) { return entry.second->has_address(pointer); });
}

void Runtime::reset(int ordinal) {
    Gpu& old = gpu(ordinal);
    blocks_.remove_all(old);
    streams_.remove_if([&](const StreamEntry& entry) { return entry.gpu == &old; });
    events_.remove_if([&](const EventEntry& entry) { return entry.gpu == &old; });
    gpus_.erase(ordinal);
}

cudaStream_t Runtime::create_stream(Gpu& gpu, unsigned flags, int priority) {
    const unsigned long long id = next_stream_id_++;
    const std::string& announced = thread().tag;
    const StreamRef ref = gpu.device().create_stream(
        announced.empty() ? fmt::format("stream {}", id) : announced,
        flags == cudaStreamNonBlocking && !SWAPLAB_MUTANT("standin.all_streams_block")
            ? StreamKind::non_blocking
            : StreamKind::blocking);
    return to_handle<cudaStream_t>(first_stream, streams_.add({&gpu, ref, flags, priority, id}));
}

cudaEvent_t Runtime::add_event(const EventEntry& entry) {
    return to_handle<cudaEvent_t>(first_event, events_.add(entry));
}

StreamEntry& Runtime::stream(cudaStream_t handle) {
    if (handle == nullptr || handle == cudaStreamLegacy) {
        return gpu(thread().device).default_stream();
    }
    if (handle == cudaStreamPerThread) {
        return gpu(thread().device).thread_stream();
    }
    StreamEntry* entry = streams_.find(to_index(first_stream, handle));
    require(entry != nullptr, cudaErrorInvalidResourceHandle, "the stream is none, or destroyed");
    return *entry;
}

EventEntry& Runtime::event(cudaEvent_t handle) {
    EventEntry* entry = events_.find(to_index(first_event, handle));
    require(entry != nullptr, cudaErrorInvalidResourceHandle, "the event is none, or destroyed");
    return *entry;
}

void Runtime::destroy_stream(cudaStream_t handle) {
    StreamEntry* entry = streams_.find(to_index(first_stream, handle));
    require(entry != nullptr, cudaErrorInvalidResourceHandle, "default streams are not destroyed");
    entry->gpu->destroy(*entry);
    streams_.remove(to_index(first_stream, handle));
}

void Runtime::synchronize(Gpu& gpu, CallSite site) {
    streams_.for_each([&](StreamEntry& entry) {
        if (entry.gpu == &gpu) {
            gpu.synchronize(entry, site);
        }
    });
    gpu.synchronize_others(site);
}

void Runtime::remove_event(cudaEvent_t handle) {
    events_.remove(to_index(first_event, handle));
}

void Runtime::name_kernel(const void* stub, const char* name) {
    const std::lock_guard lock(mutex_);
    kernel_names_[stub] = name;
}

void Runtime::check_kernel(const void* stub) const {
    require(twins_.contains(stub) || kernel_names_.contains(stub), cudaErrorInvalidDeviceFunction,
            "that is no kernel of a loaded module");
}

const KernelTwin& Runtime::twin(const void* stub) const {
    if (const auto found = twins_.find(stub); found != twins_.end()) {
        return found->second;
    }
    const auto name = kernel_names_.find(stub);
    throw Failure(cudaErrorInvalidDeviceFunction,
                  fmt::format("kernel {} has no twin for the host; give it a KernelRegistration",
                              name != kernel_names_.end() ? name->second : "of no loaded module"));
}

cudaError_t Runtime::fail(std::exception_ptr error, Gpu* gpu) noexcept {
    ThreadState& state = thread();
    try {
        try {
            std::rethrow_exception(std::move(error));
        } catch (const Failure& failure) {
            state.last_error = failure.code();
            state.last_error_text = failure.what();
        } catch (const std::bad_alloc& exhausted) {  // OutOfDeviceMemory is one
            state.last_error = cudaErrorMemoryAllocation;
            state.last_error_text = exhausted.what();
        } catch (const ArgumentError& refused) {
            state.last_error = cudaErrorInvalidValue;
            state.last_error_text = refused.what();
        } catch (const DeviceLost& lost) {
            state.last_error = gpu != nullptr ? gpu->late_code() : cudaErrorLaunchFailure;
            state.last_error_text = lost.what();
            if (gpu != nullptr) {
                gpu->break_down(state.last_error, lost.what());
            }
        } catch (const std::exception& unknown) {
            state.last_error = cudaErrorUnknown;
            state.last_error_text = unknown.what();
        }
    } catch (...) {
        state.last_error = cudaErrorUnknown;
    }
    return state.last_error;
}

void enter(const Runtime& runtime) {
    require(!Runtime::thread().in_host_function || SWAPLAB_MUTANT("standin.host_function_calls"),
            cudaErrorNotPermitted, "a host function must not call CUDA");
    runtime.check_driver();
}

CallSite site_of(const CallInfo& call) noexcept {
    const CallSite announced = Runtime::thread().site;
    return *announced.file != '\0' ? announced : CallSite{call.name, 0};
}

std::string_view tag_of(const CallInfo& call) noexcept {
    const std::string& announced = Runtime::thread().tag;
    return announced.empty() ? std::string_view(call.name) : announced;
}

}  // namespace swaplab::sim

extern "C" swaplab::sim::Standin* swaplab_standin(std::size_t options_bytes) noexcept {
    SWAPLAB_ASSERT(options_bytes == sizeof(swaplab::sim::StandinOptions),
                   fmt::format("program and stand-in are built from two trees: StandinOptions of "
                               "{} B and {} B",
                               options_bytes, sizeof(swaplab::sim::StandinOptions)));
    return &swaplab::sim::Runtime::instance();
}
