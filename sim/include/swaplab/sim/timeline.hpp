#pragma once

/// When the operations of a recorded run would begin and end on a real device.
///
/// The model: one copy engine per direction, one compute engine, each first in first out; a copy
/// takes a set-up time and then moves bytes at a rate that depends on whether the other direction
/// moves bytes, too; a kernel takes a launch time and is then bound by device memory. Ranks of one
/// host share its memory: when their copies together ask for more than it gives, all slow down by
/// the same factor. The host itself takes no time. Virtual time only: equal input gives equal
/// output, and no clock is read.

#include "swaplab/sim/worst_peak.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace swaplab::sim {

/// Rates in bytes per second, times in seconds.
struct DeviceProfile {
    std::string name;
    double copy_setup_seconds = 0;
    double launch_seconds = 0;
    double upload_bytes_per_second = 1e9;    ///< host to device, alone
    double download_bytes_per_second = 1e9;  ///< device to host, alone
    double upload_beside_download_bytes_per_second = 1e9;
    double download_beside_upload_bytes_per_second = 1e9;
    double kernel_bytes_per_second = 1e9;  ///< read and written by kernels, fills, copies
    /// Of all ranks of one host together.
    double host_memory_bytes_per_second = std::numeric_limits<double>::infinity();
};

enum class Engine : std::uint8_t {
    none,  ///< takes no time: allocations, frees, records, waits
    upload,
    download,
    compute,
};

struct TimedOperation {
    Engine engine = Engine::none;
    std::uint64_t bytes = 0;  ///< that cross the link, or that the device reads and writes
};

/// The operations of one rank in issue order, and their order edges: from lower to higher numbers.
struct TimedGraph {
    std::vector<TimedOperation> operations;
    std::vector<OrderEdge> edges;
};

struct OperationTime {
    std::uint64_t begin_picoseconds = 0;
    std::uint64_t end_picoseconds = 0;
    friend bool operator==(const OperationTime&, const OperationTime&) = default;
};

/// By rank and operation: its time on a device like `profile`, all ranks beginning together on one
/// host. An engine takes the operation issued first among those that may run. Throws ArgumentError
/// for an edge that does not lead to a later operation, and for a rate or time of the profile that
/// is not positive (times may be 0).
[[nodiscard]] std::vector<std::vector<OperationTime>> timeline(std::span<const TimedGraph> ranks,
                                                               const DeviceProfile& profile);

}  // namespace swaplab::sim
