#pragma once

/// The way to the stand-in for libcudart (sim/cuda/standin) beside the CUDA runtime API: what the
/// API has no words for. A program asks standin() whether the library it runs over is the
/// stand-in; over the real one the symbol is missing and all of this is a no-op.

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/device.hpp"
#include "swaplab/sim/fault_plan.hpp"
#include "swaplab/sim/kernel.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/timeline.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace swaplab::sim {

/// One failing call of the CUDA runtime API.
struct StandinFault {
    std::string call;             ///< "cudaMemcpyAsync"; "cudaLaunchKernel" for <<<>>>, too
    std::uint64_t ordinal = 1;    ///< of the calls that fit, from 1
    int device = 0;               ///< current when the call is made
    std::uint64_t bytes_min = 0;  ///< only calls that ask for or move at least so many
    int code = 719;               ///< cudaError_t. Sticky where CUDA's is.
    /// fail: the call returns `code` and does nothing. late: it succeeds, and its work fails as it
    /// runs; a later call reports `code`, and so does every call on the device from then on.
    FaultAction action = FaultAction::fail;
    bool for_good = false;  ///< every later call that fits, too
    friend bool operator==(const StandinFault&, const StandinFault&) = default;
};

struct StandinOptions {
    /// Of each device; `rank` is the ordinal. The context is taken by its first use.
    SimulatedDeviceOptions device = {};
    int device_count = 1;
    /// As of cudaDriverGetVersion. 0: no driver; below 13000: too old.
    int driver_version = 13000;
    /// Of cudaEventElapsedTime, which is virtual time. As published for one PCIe 5 x16 link and an
    /// H200; no claim about either.
    DeviceProfile profile = {.name = "stand-in",
                             .copy_setup_seconds = 6e-6,
                             .launch_seconds = 3e-6,
                             .upload_bytes_per_second = 55e9,
                             .download_bytes_per_second = 55e9,
                             .upload_beside_download_bytes_per_second = 50e9,
                             .download_beside_upload_bytes_per_second = 50e9,
                             .kernel_bytes_per_second = 4.3e12};
    std::vector<StandinFault> faults = {};
};

/// How a kernel runs where no device code does: a `Kernel` value made of the arguments of a launch.
/// It is made when the launch is issued, and owns copies of what it needs.
struct KernelTwin {
    const void* stub = nullptr;  ///< address of the __global__ function in host code
    std::function<Kernel(void* const* arguments)> make;
};

/// Threads: any, as the runtime API. Errors: ArgumentError for options that can never be right.
class Standin {
  public:
    Standin(const Standin&) = delete;
    Standin& operator=(const Standin&) = delete;

    /// Ends all devices and begins anew; handles and memory given out before are gone, and so are
    /// the SimulatedDevices. Kernels stay.
    virtual void configure(const StandinOptions& options) = 0;
    /// The later one holds for a stub.
    virtual void add_kernel(KernelTwin twin) = 0;

    /// Ledger, findings, trace, worst peak and the rest of one device. Valid until configure() and
    /// cudaDeviceReset(). Throws ArgumentError where there is none of that number.
    virtual SimulatedDevice& device(int ordinal) = 0;
    /// What this thread's calls are for, from now on: the tag of memory that they allocate, the
    /// name of streams that they create, and where they stand in the source. Without it the call
    /// itself is named.
    virtual void announce(std::string_view tag, CallSite site) = 0;
    /// As Device::host_access. Memory that is not pinned is nobody's concern.
    virtual void host_access(const void* pointer, std::uint64_t bytes, Access access,
                             CallSite site) = 0;
    /// Counts anew from here on.
    virtual void arm(const std::vector<StandinFault>& faults) = 0;
    /// What the last failing call of this thread has to say beyond its code.
    [[nodiscard]] virtual std::string last_error_text() const = 0;

  protected:
    Standin() = default;
    ~Standin() = default;
};

}  // namespace swaplab::sim

extern "C" {
/// Defined by the stand-in alone. Asserts that its StandinOptions has as many bytes as the
/// caller's: both are to be built from one tree.
__attribute__((weak)) swaplab::sim::Standin* swaplab_standin(std::size_t options_bytes) noexcept;
}

namespace swaplab::sim {

/// nullptr over the real library, and in programs that use neither.
[[nodiscard]] inline Standin* standin() noexcept {
    return swaplab_standin != nullptr ? swaplab_standin(sizeof(StandinOptions)) : nullptr;
}

/// Registers the twin of a kernel for as long as the program runs; at namespace scope of the .cu
/// file that holds the kernel, since stubs of templates are known there alone:
///
///     const KernelRegistration registration(scale, [](float* values, int count) -> Kernel {...});
class KernelRegistration {
  public:
    template <class... Parameters, class Twin>
    KernelRegistration(void (*kernel)(Parameters...), Twin twin) {
        if (Standin* found = standin()) {
            found->add_kernel(
                {reinterpret_cast<const void*>(kernel),  // NOLINT: as the launch ABI does
                 [twin = std::move(twin)](void* const* arguments) {
                     return call<Parameters...>(twin, arguments,
                                                std::index_sequence_for<Parameters...>{});
                 }});
        }
    }

  private:
    template <class... Parameters, class Twin, std::size_t... Index>
    static Kernel call(const Twin& twin, [[maybe_unused]] void* const* arguments,
                       std::index_sequence<Index...>) {
        return twin(*static_cast<const std::remove_reference_t<Parameters>*>(arguments[Index])...);
    }
};

}  // namespace swaplab::sim
