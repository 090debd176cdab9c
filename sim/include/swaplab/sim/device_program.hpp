#pragma once

/// The calls that one rank made to its device, as values: recorded, written down, made again.

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/device.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace swaplab::sim {

enum class CallKind : std::uint8_t {
    allocate,
    deallocate,
    allocate_pinned,
    deallocate_pinned,
    create_stream,
    default_stream,
    destroy_stream,
    create_event,
    destroy_event,
    copy,
    copy_pageable,
    fill,
    launch,
    call_host,
    record,
    wait,
    synchronize,
    query,
    host_access,
};
inline constexpr std::size_t call_kind_count = 19;

/// Streams, events and memory are numbered in the order in which they were made, each on its own,
/// and never again; so are device and pinned memory together.
struct DeviceCall {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    struct Range {
        std::uint32_t memory = none;  ///< none: memory that the device never gave out
        std::uint64_t offset_bytes = 0;
        std::uint64_t bytes = 0;
        friend bool operator==(const Range&, const Range&) = default;
    };

    CallKind kind{};
    /// Of copies the CopyDirection, of new streams the StreamKind, of fills the value; of
    /// allocations 1 outside of the pool.
    std::uint8_t variant = 0;
    bool refused = false;    ///< the call threw
    bool failed = false;     ///< what it issued threw as it ran
    std::uint32_t name = 0;  ///< of memory the tag; of streams, kernels and host functions theirs
    std::uint32_t file = 0;
    std::uint32_t line = 0;
    std::uint32_t stream = none;
    std::uint32_t event = none;
    /// Of copies one each, of allocations and frees one written, of host accesses one in all.
    std::vector<Range> reads, writes;
    friend bool operator==(const DeviceCall&, const DeviceCall&) = default;
};

struct DeviceProgram {
    std::vector<std::string> names;  ///< each once; of files, too, without their folders
    std::vector<DeviceCall> calls;
    friend bool operator==(const DeviceProgram&, const DeviceProgram&) = default;
};

/// A device that hands everything on to `inner` and appends each call to `program`, as long as both
/// live. Streams and events are its own. What host code inside kernels does, and touches of memory
/// that are no calls, are not recorded.
[[nodiscard]] std::unique_ptr<Device> make_recording_device(Device& inner, DeviceProgram& program);

/// Makes the calls of `program` to `device`, a fresh one. Kernels and host functions have no
/// bodies, so device bytes are not the recorded ones; those that failed fail again. Call sites
/// point into `program`, which must live as long as the device. Throws ArgumentError for a call of
/// a stream, event or memory that no call before made, and what a call throws that did not throw
/// when it was recorded.
void run_program(const DeviceProgram& program, Device& device);

/// Device and pinned memory that its calls hold at once, at the most; as asked for.
[[nodiscard]] std::uint64_t most_bytes_held(const DeviceProgram& program);

}  // namespace swaplab::sim
