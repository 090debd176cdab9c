#pragma once

/// The state behind the entry points: devices, handles, memory, kernels, and each thread's own.

#include "cuda/standin/blocks.hpp"
#include "cuda/standin/gpu.hpp"
#include "simulated/handle_table.hpp"

#include "swaplab/sim/cuda/standin.hpp"

#include <cstdint>
#include <cuda_runtime_api.h>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::sim {

/// What <<<>>> says, until the launch that it is for.
struct LaunchShape {
    dim3 grid{};
    dim3 block{};
    std::size_t shared_bytes = 0;
    cudaStream_t stream = nullptr;
};

struct ThreadState {
    int device = 0;
    cudaError_t last_error = cudaSuccess;
    std::string last_error_text;
    std::string tag;
    CallSite site;
    std::vector<LaunchShape> launches;
    bool in_host_function = false;
};

struct EventEntry {
    Gpu* gpu = nullptr;
    EventRef ref;
    unsigned flags = 0;
    bool recorded = false;
    std::uint64_t operation = 0;  ///< the record, in the trace of the device
};

class Runtime final : public Standin {
  public:
    [[nodiscard]] static Runtime& instance();
    [[nodiscard]] static ThreadState& thread() noexcept;

    void configure(const StandinOptions& options) override;
    void add_kernel(KernelTwin twin) override;
    SimulatedDevice& device(int ordinal) override;
    void announce(std::string_view tag, CallSite site) override;
    void host_access(const void* pointer, std::uint64_t bytes, Access access,
                     CallSite site) override;
    void arm(const std::vector<StandinFault>& faults) override;
    [[nodiscard]] std::string last_error_text() const override;

    [[nodiscard]] std::recursive_mutex& mutex() noexcept { return mutex_; }
    [[nodiscard]] const StandinOptions& options() const noexcept { return options_; }
    /// Throws what keeps every call from working.
    void check_driver() const;
    /// The device of that number, made at its first use.
    [[nodiscard]] Gpu& gpu(int ordinal);
    void reset(int ordinal);
    void check_ordinal(int ordinal) const;

    [[nodiscard]] Blocks& blocks() noexcept { return blocks_; }
    /// Whether some device has its memory there, live or not.
    [[nodiscard]] bool is_device_address(const void* pointer) const;
    [[nodiscard]] cudaStream_t create_stream(Gpu& gpu, unsigned flags, int priority);
    [[nodiscard]] cudaEvent_t add_event(const EventEntry& entry);
    /// Of the current device where the handle stands for a default stream.
    [[nodiscard]] StreamEntry& stream(cudaStream_t handle);
    [[nodiscard]] EventEntry& event(cudaEvent_t handle);
    void destroy_stream(cudaStream_t handle);
    void remove_event(cudaEvent_t handle);
    /// Returns when everything issued to the device so far has run.
    void synchronize(Gpu& gpu, CallSite site);

    void name_kernel(const void* stub, const char* name);
    /// Throws a Failure that names the kernel where it has no twin.
    [[nodiscard]] const KernelTwin& twin(const void* stub) const;
    /// Throws a Failure for what is no kernel of a loaded module.
    void check_kernel(const void* stub) const;

    /// Notes what went wrong, and returns its code. `gpu` may be nullptr.
    cudaError_t fail(std::exception_ptr error, Gpu* gpu) noexcept;

  private:
    Runtime() = default;

    mutable std::recursive_mutex mutex_;
    StandinOptions options_;
    std::map<int, std::unique_ptr<Gpu>> gpus_;
    int process_ = 0;  ///< that made the first of them
    Blocks blocks_;
    HandleTable<StreamEntry> streams_;
    HandleTable<EventEntry> events_;
    std::map<const void*, KernelTwin> twins_;
    std::map<const void*, std::string> kernel_names_;
    unsigned long long next_stream_id_ = 1;
};

/// The site of a call: announced, or the call itself.
[[nodiscard]] CallSite site_of(const CallInfo& call) noexcept;
[[nodiscard]] std::string_view tag_of(const CallInfo& call) noexcept;

/// Throws what keeps a call of this thread from being made at all.
void enter(const Runtime& runtime);

/// Carries out a call that needs no device. `body(runtime)` throws a Failure to fail.
template <class Body>
cudaError_t host_call(const Body& body) noexcept {
    Runtime& runtime = Runtime::instance();
    const std::lock_guard lock(runtime.mutex());
    try {
        enter(runtime);
        body(runtime);
        return cudaSuccess;
    } catch (...) {
        return runtime.fail(std::current_exception(), nullptr);
    }
}

inline Gpu& gpu_of(Gpu& gpu) noexcept {
    return gpu;
}
template <class Entry>
Gpu& gpu_of(const Entry& entry) noexcept {
    return *entry.gpu;
}
inline StreamEntry* stream_of(StreamEntry& entry) noexcept {
    return &entry;
}
template <class Other>
StreamEntry* stream_of(const Other&) noexcept {
    return nullptr;
}

/// Carries out a call that is about what `find(runtime, current)` returns: `body(runtime, it)`.
template <class Find, class Body>
cudaError_t call_about(const CallInfo& call, const Find& find, const Body& body) noexcept {
    Runtime& runtime = Runtime::instance();
    const std::lock_guard lock(runtime.mutex());
    Gpu* gpu = nullptr;
    try {
        enter(runtime);
        gpu = &runtime.gpu(Runtime::thread().device);
        auto& found = find(runtime, *gpu);
        gpu = &gpu_of(found);
        if (call.effect == Effect::release) {
            body(runtime, found);
            gpu->check();
        } else if (gpu->admits(call, site_of(call), stream_of(found))) {
            body(runtime, found);
        }
        return cudaSuccess;
    } catch (...) {
        return runtime.fail(std::current_exception(), gpu);
    }
}

/// About the current device.
template <class Body>
cudaError_t device_call(const CallInfo& call, const Body& body) noexcept {
    return call_about(
        call, [](Runtime&, Gpu& current) -> Gpu& { return current; }, body);
}

template <class Body>
cudaError_t stream_call(const CallInfo& call, cudaStream_t stream, const Body& body) noexcept {
    return call_about(
        call, [=](Runtime& runtime, Gpu&) -> StreamEntry& { return runtime.stream(stream); }, body);
}

template <class Body>
cudaError_t event_call(const CallInfo& call, cudaEvent_t event, const Body& body) noexcept {
    return call_about(
        call, [=](Runtime& runtime, Gpu&) -> EventEntry& { return runtime.event(event); }, body);
}

}  // namespace swaplab::sim
