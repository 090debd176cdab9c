#pragma once

/// What was issued, from where, and what orders it: enough to rebuild the graph of a whole run.

#include "simulated/clock.hpp"
#include "simulated/names.hpp"

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/simulated_device.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::sim {

enum class OperationKind : std::uint8_t {
    allocate,
    free,
    allocate_pinned,
    free_pinned,
    copy_h2d,
    copy_d2h,
    copy_d2d,
    fill,
    launch,
    record,
    wait,
    synchronize,
    host_read,
    host_write,
    copy_h2d_pageable,
    copy_d2h_pageable,
    call_host,
};

/// "allocate", "copy h2d", ...; without the name of a kernel or host function.
[[nodiscard]] std::string_view name_of(OperationKind kind) noexcept;

/// One operation as issued. Order: operations of one lane follow each other by `sequence`; a wait
/// and a free also follow `after()`; and all follow what the host had waited for (see HostWait).
struct OperationRecord {
    const char* file = "";  ///< with `line`: the call site, packed
    int line = 0;
    OperationKind kind{};
    NameId stream = 0;
    NameId tag = 0;
    LaneId lane = 0;
    std::uint32_t detail = 0;    ///< name of a kernel or host function; of a wait or free after()
    std::uint64_t sequence = 0;  ///< in its lane; 0: the host's own, in no lane
    std::uint64_t place = 0;     ///< the offset in bytes, of a wait or free see after()
    std::uint64_t bytes = 0;     ///< as asked for

    [[nodiscard]] CallSite site() const noexcept { return {file, line}; }
    [[nodiscard]] Epoch epoch() const noexcept { return {lane, sequence}; }
    /// Whether it calls code that has a name of its own.
    [[nodiscard]] bool calls() const noexcept {
        return kind == OperationKind::launch || kind == OperationKind::call_host;
    }
    [[nodiscard]] NameId kernel() const noexcept { return calls() ? detail : 0; }
    /// Whether it follows one more operation: a wait what it waits for, a free the allocation.
    [[nodiscard]] bool follows() const noexcept {
        return kind == OperationKind::wait || kind == OperationKind::free;
    }
    void follow(Epoch epoch) noexcept {
        detail = epoch.lane;
        place = epoch.sequence;
    }
    [[nodiscard]] Epoch after() const noexcept {
        return follows() ? Epoch{detail, place} : Epoch{};
    }
    [[nodiscard]] std::uint64_t offset_bytes() const noexcept { return follows() ? 0 : place; }
};

/// Operations from `before_operation` on are ordered after `mark` and what precedes it: the host
/// waited for it.
struct HostWait {
    std::uint64_t before_operation = 0;
    Epoch mark{};
};

/// All operations of one device in issue order; the place in it is the operation's id.
class OperationLog {
  public:
    std::uint64_t add(const OperationRecord& record) {
        if (size_ % block_records == 0) {
            blocks_.emplace_back().reserve(block_records);
        }
        blocks_.back().push_back(record);
        return size_++;
    }
    void add_host_wait(Epoch mark) { host_waits_.push_back({size_, mark}); }

    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] const OperationRecord& operator[](std::uint64_t id) const noexcept {
        return blocks_[id / block_records][id % block_records];
    }
    [[nodiscard]] const std::vector<HostWait>& host_waits() const noexcept { return host_waits_; }
    [[nodiscard]] Names& names() noexcept { return names_; }
    [[nodiscard]] const Names& names() const noexcept { return names_; }

    /// "launch adamw".
    [[nodiscard]] std::string operation(std::uint64_t id) const;
    [[nodiscard]] const std::string& stream(std::uint64_t id) const {
        return names_[(*this)[id].stream];
    }
    /// "copy h2d on upload (swap_adamw.cpp:12)".
    [[nodiscard]] std::string describe(std::uint64_t id) const;
    /// Of everything that trace() tells about it; equal for equal programs.
    [[nodiscard]] std::uint64_t digest(std::uint64_t id) const;
    /// Texts are made for what was issued since the last call.
    [[nodiscard]] const std::vector<TraceEvent>& trace() const;

  private:
    static constexpr std::size_t block_records = 512;

    Names names_;
    std::uint64_t size_ = 0;
    std::vector<std::vector<OperationRecord>> blocks_;  ///< so that growth moves no record
    std::vector<HostWait> host_waits_;
    mutable std::vector<TraceEvent> trace_;
};

}  // namespace swaplab::sim
