/// What the device found.

#include "simulated/accelerator.hpp"

#include <fmt/format.h>

#include <utility>

namespace swaplab::sim {
namespace {

constexpr FindingKind all_kinds[] = {
    FindingKind::race,           FindingKind::leak,
    FindingKind::pending_work,   FindingKind::unwaited_event,
    FindingKind::host_touch,     FindingKind::host_pointer,
    FindingKind::use_after_free, FindingKind::in_flight_reuse,
    FindingKind::uninitialised,
};

}  // namespace

std::string_view name_of(FindingKind kind) noexcept {
    switch (kind) {
        case FindingKind::race:
            return "race";
        case FindingKind::leak:
            return "leak";
        case FindingKind::pending_work:
            return "pending_work";
        case FindingKind::unwaited_event:
            return "unwaited_event";
        case FindingKind::host_touch:
            return "host_touch";
        case FindingKind::host_pointer:
            return "host_pointer";
        case FindingKind::use_after_free:
            return "use_after_free";
        case FindingKind::in_flight_reuse:
            return "in_flight_reuse";
        case FindingKind::uninitialised:
            return "uninitialised";
    }
    return "race";
}

std::optional<FindingKind> finding_kind_from_name(std::string_view name) noexcept {
    for (const FindingKind kind : all_kinds) {
        if (name == name_of(kind)) {
            return kind;
        }
    }
    return std::nullopt;
}

void Accelerator::add_finding(FindingKind kind, const std::string& text, ErrorFields fields) {
    fields.insert(fields.begin(), {"rank", fmt::format("rank {}", rank())});
    findings_.push_back(
        {kind, fmt::format("{}: rank {}, {}", name_of(kind), rank(), text), std::move(fields)});
}

void Accelerator::find_wrong_free(const Allocations& allocations, const void* pointer,
                                  CallSite site) {
    const std::uint64_t address = address_of(pointer);
    const ErrorFields at{{"operation", "free"}, {"site", format_site(site)}};
    if (const Allocation* inside = allocations.find(address)) {
        return add_finding(FindingKind::use_after_free,
                           fmt::format("free of an address {} B inside \"{}\" ({}); free its "
                                       "first byte",
                                       address - inside->address, inside->tag, format_site(site)),
                           at);
    }
    if (const Allocations::Freed* freed = allocations.find_freed(address)) {
        return add_finding(
            FindingKind::use_after_free,
            fmt::format("second free of \"{}\" ({}); freed before at {}", freed->allocation.tag,
                        format_site(site), format_site(freed->site)),
            at);
    }
    add_finding(
        FindingKind::host_pointer,
        fmt::format("free of an address that this device never gave out ({})", format_site(site)),
        at);
}

}  // namespace swaplab::sim
