/// Life of the device, and how its calls fail.

#include "cuda/cuda_backend.hpp"

#include "cuda/cuda_error.hpp"
#include "cuda/flip_kernel.hpp"
#include "faults/flip_launcher.hpp"

#include "swaplab/sim/cuda/standin.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <utility>

namespace swaplab::sim {
namespace {

constexpr int driver_version_min = 13000;
constexpr std::size_t holders_shown_max = 10;

std::string version_text(int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// What keeps CUDA from working here; empty: nothing.
std::string obstacle() {
    int version = 0;
    const cudaError_t asked = cudaDriverGetVersion(&version);
    if (asked != cudaSuccess || version < driver_version_min) {
        return fmt::format(
            "{}: {}",
            version == 0 ? std::string("no CUDA driver is installed")
                         : fmt::format("the CUDA driver knows CUDA {}, and {} is needed",
                                       version_text(version), version_text(driver_version_min)),
            advice(cudaErrorInsufficientDriver));
    }
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess) {
        const std::string text =
            fmt::format("cudaGetDeviceCount failed with {}; {}", describe(code), advice(code));
        static_cast<void>(cudaGetLastError());
        return text;
    }
    return count > 0 ? "" : fmt::format("there is no GPU; {}", advice(cudaErrorNoDevice));
}

thread_local bool in_host_function = false;

}  // namespace

CudaAvailability cuda_available() {
    std::string missing = obstacle();
    if (!missing.empty()) {
        return {false, std::move(missing)};
    }
    cudaDeviceProp properties{};
    const cudaError_t code = cudaGetDeviceProperties(&properties, 0);
    return code == cudaSuccess ? CudaAvailability{true, properties.name}
                               : CudaAvailability{false, describe(code) + "; " + advice(code)};
}

std::unique_ptr<CudaDevice> make_cuda_device(const CudaDeviceOptions& options) {
    return std::make_unique<CudaBackend>(options);
}

CudaBackend::CudaBackend(const CudaDeviceOptions& options)
    : CudaDevice(options.rank, ledger_), options_(options) {
    const Caller caller{"make_cuda_device", CallSite::here()};
    if (std::string missing = obstacle(); !missing.empty()) {
        throw DeviceError(fmt::format("rank {}: CUDA cannot be used: {}", rank(), missing),
                          {{"rank", fmt::format("rank {}", rank())}, {"reason", missing}});
    }
    enter(caller);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo", caller);
    make_pool(caller);
    capacity_bytes_ = options.capacity_bytes != 0 ? options.capacity_bytes : free_bytes;
    register_flip_launcher(launch_flip);
    default_stream_ = streams_.add({cudaStreamLegacy, lanes_++, 0, {}});
}

// Of its own, so that its figures are those of this device alone and the threshold nobody else's.
void CudaBackend::make_pool(const Caller& caller) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, options_.ordinal};
    check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate", caller);
    std::uint64_t keep = options_.pool_keeps_bytes;
    const cudaError_t code = cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep);
    if (code != cudaSuccess) {
        cudaMemPoolDestroy(pool_);  // no destructor runs when a constructor throws
    }
    check(code, "cudaMemPoolSetAttribute", caller);
}

// Owners have given everything back by now; what is left belongs to programs that leak.
CudaBackend::~CudaBackend() {
    const Caller caller{"~CudaDevice", CallSite::here()};
    if (!leave(caller)) {
        return;
    }
    events_.for_each([](const EventState& event) { cudaEventDestroy(event.native); });
    streams_.for_each([](const StreamState& stream) {
        if (stream.native != cudaStreamLegacy) {
            cudaStreamDestroy(stream.native);
        }
    });
    memory_.for_each([](void* begin, const CudaBlock& block) {
        block.kind == MemoryKind::pinned ? cudaFreeHost(begin) : cudaFree(begin);
    });
    if (!host_calls_.empty() && !failure_) {
        cudaDeviceSynchronize();
    }
    cudaMemPoolDestroy(pool_);
    static_cast<void>(cudaGetLastError());
}

void CudaBackend::enter(const Caller& caller) {
    if (in_host_function) {
        refuse(caller, "kernels and host functions must not call their device");
    }
    if (failure_) {
        throw device_lost(rank(), *failure_, caller.text(), caller.site);
    }
    check(cudaSetDevice(options_.ordinal), "cudaSetDevice", caller);
    if (Standin* found = standin()) {
        found->announce(caller.subject, caller.site);
    }
}

bool CudaBackend::leave(const Caller& caller) noexcept {
    if (in_host_function) {
        return false;
    }
    cudaSetDevice(options_.ordinal);
    if (Standin* found = standin()) {
        found->announce(caller.subject, caller.site);
    }
    return true;
}

void CudaBackend::check(cudaError_t code, const char* call, const Caller& caller) {
    if (code == cudaSuccess || SWAPLAB_MUTANT("cuda.code_ignored")) {
        return;
    }
    if (loses_device(code)) {
        lose(code, call, caller);
    }
    const std::string reason = describe(code);
    static_cast<void>(cudaGetLastError());
    throw DeviceError(
        fmt::format("rank {}: {} failed ({}): {} returned {}; {}", rank(), caller.text(),
                    format_site(caller.site), call, reason, advice(code)),
        {{"rank", fmt::format("rank {}", rank())},
         {"operation", caller.text()},
         {"site", format_site(caller.site)},
         {"call", call},
         {"code", cudaGetErrorName(code)},
         {"number", std::to_string(static_cast<int>(code))},
         {"reason", reason},
         {"advice", advice(code)}});
}

void CudaBackend::lose(cudaError_t code, const char* call, const Caller& caller) {
    LateFailure failure;
    const PendingOperation* suspect = pending_.suspect(is_kernel_failure(code));
    failure.origin = suspect != nullptr ? suspect->name : caller.text();
    failure.origin_site = suspect != nullptr ? suspect->site : caller.site;
    failure.reason = fmt::format("{} returned {}; {}", call, describe(code), advice(code));
    failure_ = std::move(failure);
    throw device_lost(rank(), *failure_, caller.text(), caller.site);
}

void CudaBackend::refuse(const Caller& caller, const std::string& reason,
                         ErrorFields fields) const {
    throw refusal(rank(), caller, reason, std::move(fields));
}

void CudaBackend::run_out(MemoryKind kind, std::uint64_t bytes, std::uint64_t rounded_bytes,
                          std::string_view tag, CallSite site, std::uint64_t free_bytes) const {
    OutOfDeviceMemory::Report report;
    report.rank = rank();
    report.memory = std::string(name_of(kind));
    report.tag = std::string(tag);
    report.requested_bytes = bytes;
    report.rounded_bytes = rounded_bytes;
    report.charged_bytes = ledger_.now(kind, Size::rounded);
    report.capacity_bytes = report.charged_bytes + free_bytes;
    report.holders = ledger_.holders(kind, holders_shown_max);
    report.by_tag = ledger_.by_tag(kind);
    report.site = site;
    report.largest_hole_bytes = free_bytes;
    throw OutOfDeviceMemory(std::move(report));
}

CudaBackend::StreamState& CudaBackend::stream_state(StreamRef stream, const Caller& caller) {
    StreamState* state = &stream.device() == this ? streams_.find(stream.handle()) : nullptr;
    if (state == nullptr) {
        refuse(caller, "the stream is not a live stream of this device");
    }
    return *state;
}

CudaBackend::EventState& CudaBackend::event_state(EventRef event, const Caller& caller) {
    EventState* state = &event.device() == this ? events_.find(event.handle()) : nullptr;
    if (state == nullptr) {
        refuse(caller, "the event is not a live event of this device");
    }
    return *state;
}

void CudaBackend::HostCall::run(void* call) noexcept {
    auto* const self = static_cast<HostCall*>(call);
    in_host_function = true;
    self->function.body();
    in_host_function = false;
    self->done = true;
}

void CudaBackend::forget_host_calls() {
    host_calls_.remove_if([](const HostCall& call) { return call.done.load(); });
}

}  // namespace swaplab::sim
