#include "simulated/operation_log.hpp"

#include "swaplab/sim/digest.hpp"

#include <array>

namespace swaplab::sim {

std::string_view name_of(OperationKind kind) noexcept {
    static constexpr std::array<std::string_view, 17> names{"allocate",
                                                            "free",
                                                            "allocate pinned",
                                                            "free pinned",
                                                            "copy h2d",
                                                            "copy d2h",
                                                            "copy d2d",
                                                            "fill",
                                                            "launch",
                                                            "record",
                                                            "wait",
                                                            "synchronize",
                                                            "host read",
                                                            "host write",
                                                            "copy h2d pageable",
                                                            "copy d2h pageable",
                                                            "call host"};
    return names[static_cast<std::size_t>(kind)];
}

std::string OperationLog::operation(std::uint64_t id) const {
    const OperationRecord& record = (*this)[id];
    std::string text(name_of(record.kind));
    return record.calls() ? text + " " + names_[record.kernel()] : text;
}

std::string OperationLog::describe(std::uint64_t id) const {
    const std::string& on = stream(id);
    return operation(id) + (on.empty() ? "" : " on " + on) + " (" +
           format_site((*this)[id].site()) + ")";
}

std::uint64_t OperationLog::digest(std::uint64_t id) const {
    const OperationRecord& record = (*this)[id];
    RollingDigest digest;
    digest.add(static_cast<std::uint64_t>(record.kind));
    for (const NameId name : {record.stream, record.tag, record.kernel()}) {
        digest.add(std::string_view(names_[name]));
    }
    digest.add(record.offset_bytes());
    digest.add(record.bytes);
    return digest.value();
}

const std::vector<TraceEvent>& OperationLog::trace() const {
    for (std::uint64_t id = trace_.size(); id < size_; ++id) {
        const OperationRecord& record = (*this)[id];
        const CopyDirection direction = record.kind == OperationKind::copy_d2h ||
                                                record.kind == OperationKind::copy_d2h_pageable
                                            ? CopyDirection::device_to_host
                                        : record.kind == OperationKind::copy_d2d
                                            ? CopyDirection::device_to_device
                                            : CopyDirection::host_to_device;
        trace_.push_back({operation(id), stream(id), names_[record.tag], record.offset_bytes(),
                          record.bytes, direction});
    }
    return trace_;
}

}  // namespace swaplab::sim
