#pragma once

/// Launched kernels until they have run, and the bytes around what they declare.

#include "simulated/handle_table.hpp"

#include "swaplab/sim/kernel.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace swaplab::sim {

/// Runs the bodies of kernels. What is seen of accesses outside of the declared ranges: an address
/// asked of DeviceAccess there, and a byte changed within `guard_bytes` of a declared range. A read
/// further on through a pointer is a plain load of the host and stays unseen.
class Launches {
  public:
    enum class Check { off, on };
    static constexpr std::uint64_t guard_bytes = 64;

    /// `undeclared` is told a device address once for each asked address, and once for each gap
    /// between declared ranges in which a byte changed. [begin, begin + bytes): all of the device.
    Launches(const std::byte* begin, std::uint64_t bytes, std::ptrdiff_t alias_offset_bytes,
             Check check, std::function<void(const void*)> undeclared);

    /// A handle for run(), which ends it.
    std::uint64_t add(Kernel kernel) { return kernels_.add(std::move(kernel)); }
    /// Throws what the body throws.
    void run(std::uint64_t launch);
    /// Ends it without running it.
    void drop(std::uint64_t launch) { kernels_.remove(launch); }

  private:
    struct Range {
        const std::byte* begin = nullptr;
        const std::byte* end = nullptr;
    };
    /// Bytes beside a declared range, and their content before the body ran.
    struct Gap {
        Range range;
        std::size_t saved_at = 0;
    };

    void declare(const Kernel& kernel);
    void save_gaps();
    void save_gap(Range gap);
    void compare_gaps() const;
    void asked(const void* device_pointer) const;

    const std::byte* begin_;
    const std::byte* end_;
    std::ptrdiff_t alias_offset_bytes_;
    Check check_;
    std::function<void(const void*)> undeclared_;
    DeviceAccess::Asked asked_;
    HandleTable<Kernel> kernels_;
    // Of the launch that runs; kept for their memory.
    std::vector<Range> declared_;  ///< by address, never overlapping or adjacent
    std::vector<Gap> gaps_;
    std::vector<std::byte> saved_;
};

}  // namespace swaplab::sim
