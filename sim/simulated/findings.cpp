/// What the device found.

#include "simulated/accelerator.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <utility>

namespace swaplab::sim {
namespace {

constexpr FindingKind all_kinds[] = {
    FindingKind::race,           FindingKind::leak,
    FindingKind::pending_work,   FindingKind::unwaited_event,
    FindingKind::host_touch,     FindingKind::host_pointer,
    FindingKind::use_after_free, FindingKind::in_flight_reuse,
    FindingKind::uninitialised,  FindingKind::undeclared_access,
    FindingKind::reentrant_call, FindingKind::bad_argument,
};

std::string destroyed_text(CallSite site) {
    return site.line == 0 ? "" : fmt::format(", destroyed at {}", format_site(site));
}

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
        case FindingKind::undeclared_access:
            return "undeclared_access";
        case FindingKind::reentrant_call:
            return "reentrant_call";
        case FindingKind::bad_argument:
            return "bad_argument";
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
    std::string whole = fmt::format("{}: rank {}, {}", name_of(kind), rank(), text);
    if (found_.insert(whole).second) {
        findings_.push_back({kind, std::move(whole), std::move(fields)});
    }
}

void Accelerator::find_conflict(FindingKind kind, const Conflict& conflict, std::uint64_t later,
                                const Allocation& allocation) {
    const std::uint64_t earlier = conflict.earlier.operation;
    const std::string& from = log_.stream(earlier);
    const std::string& to = log_.stream(later);
    const std::string missing = to.empty() ? fmt::format("record on {} -> synchronize", from)
                                           : fmt::format("record on {} -> wait on {}", from, to);
    if (!found_
             .insert(fmt::format("{} {} {}", name_of(kind), log_.describe(earlier),
                                 log_.describe(later)))
             .second) {
        return;
    }
    add_finding(kind,
                fmt::format("\"{}\" bytes {} to {}: {} is not ordered after {}; missing: {} "
                            "(memory allocated at {})",
                            tag_of(allocation), with_thousands(conflict.bytes.begin),
                            with_thousands(conflict.bytes.end), log_.describe(later),
                            log_.describe(earlier), missing, format_site(allocation.site)),
                {{"operation", log_.operation(later)},
                 {"site", format_site(log_[later].site())},
                 {"operation", log_.operation(earlier)},
                 {"site", format_site(log_[earlier].site())},
                 {"tag", tag_of(allocation)},
                 {"allocated_at", format_site(allocation.site)},
                 {"offset_bytes", std::to_string(conflict.bytes.begin)},
                 {"bytes", std::to_string(conflict.bytes.end - conflict.bytes.begin)},
                 {"missing", missing}});
}

void Accelerator::find_unscoped(const PageGuard::HostTouch& touch) {
    const char* const verb = touch.kind == Kind::read ? "host read" : "host write";
    if (const Allocation* freed = pinned_memory_.find_freed(touch.address)) {
        return find_use_after_free(*freed, {verb, {}, "without a scope"});
    }
    const Allocation* live = pinned_memory_.find(touch.address);
    if (live == nullptr || failure_) {
        return;
    }
    // What raced is the touched byte; what is in flight goes on from there.
    const std::uint64_t begin = touch.address - live->address;
    const Span span{begin, live->bytes};
    const auto conflict = touch.kind == Kind::read ? live->shadow.conflict_of_read(span, host_)
                                                   : live->shadow.conflict_of_write(span, host_);
    if (!conflict || conflict->bytes.begin != begin) {
        return;
    }
    const std::uint64_t earlier = conflict->earlier.operation;
    const std::string missing = fmt::format("record on {} -> synchronize", log_.stream(earlier));
    add_finding(
        FindingKind::race,
        fmt::format("\"{}\" bytes {} to {}: {} without a scope is not ordered after {}; "
                    "missing: {} (memory allocated at {})",
                    tag_of(*live), with_thousands(begin), with_thousands(conflict->bytes.end), verb,
                    log_.describe(earlier), missing, format_site(live->site)),
        {{"operation", verb},
         {"operation", log_.operation(earlier)},
         {"site", format_site(log_[earlier].site())},
         {"tag", tag_of(*live)},
         {"allocated_at", format_site(live->site)},
         {"offset_bytes", std::to_string(begin)},
         {"bytes", std::to_string(conflict->bytes.end - begin)},
         {"missing", missing}});
}

void Accelerator::find_unwritten(Span span, std::uint64_t reader, const Allocation& allocation) {
    add_finding(
        FindingKind::uninitialised,
        fmt::format("{} reads bytes {} to {} of \"{}\", which nothing has written "
                    "(allocated at {})",
                    log_.describe(reader), with_thousands(span.begin), with_thousands(span.end),
                    tag_of(allocation), format_site(allocation.site)),
        {{"operation", log_.operation(reader)},
         {"site", format_site(log_[reader].site())},
         {"tag", tag_of(allocation)},
         {"offset_bytes", std::to_string(span.begin)},
         {"bytes", std::to_string(span.end - span.begin)}});
}

void Accelerator::find_undeclared(const void* device_pointer) {
    const std::uint64_t address = address_of(device_pointer);
    const Allocation* allocation = device_memory_.find(address);
    const std::string where =
        allocation == nullptr
            ? "memory that is not allocated"
            : fmt::format("byte {} of \"{}\"", with_thousands(address - allocation->address),
                          tag_of(*allocation));
    add_finding(FindingKind::undeclared_access,
                fmt::format("{} touches {}, outside of the ranges that it declares",
                            log_.describe(running_), where),
                {{"operation", log_.operation(running_)},
                 {"site", format_site(log_[running_].site())},
                 {"tag", allocation == nullptr ? "" : tag_of(*allocation)}});
}

void Accelerator::find_use_after_free(const Allocation& freed, const Caller& caller) {
    add_finding(FindingKind::use_after_free,
                fmt::format("{}{} uses \"{}\", freed at {}", caller.text(),
                            caller.site.line == 0 ? "" : " (" + format_site(caller.site) + ")",
                            tag_of(freed), format_site(freed.freed_at)),
                {{"operation", caller.text()},
                 {"site", format_site(caller.site)},
                 {"tag", tag_of(freed)},
                 {"freed_at", format_site(freed.freed_at)}});
}

void Accelerator::find_not_device_memory(const void* pointer, const Caller& caller) {
    const std::uint64_t address = address_of(pointer);
    if (const Allocation* freed = device_memory_.find_freed(address)) {
        find_use_after_free(*freed, caller);
    } else if (!arena_.contains(pointer)) {
        const Allocation* pinned = pinned_memory_.find(address);
        const std::string whose =
            pinned == nullptr ? "host memory" : fmt::format("pinned \"{}\"", tag_of(*pinned));
        add_finding(FindingKind::host_pointer,
                    fmt::format("{} ({}) is handed {} where device memory belongs", caller.text(),
                                format_site(caller.site), whose),
                    {{"operation", caller.text()},
                     {"site", format_site(caller.site)},
                     {"tag", pinned == nullptr ? "" : tag_of(*pinned)}});
    }
}

void Accelerator::find_wrong_free(const Allocations& allocations, const void* pointer,
                                  CallSite site) {
    const std::uint64_t address = address_of(pointer);
    ErrorFields at{{"operation", "free"}, {"site", format_site(site)}};
    if (const Allocation* inside = allocations.find(address)) {
        at.push_back({"tag", tag_of(*inside)});
        return add_finding(
            FindingKind::use_after_free,
            fmt::format("free of an address {} B inside \"{}\" ({}); free its "
                        "first byte",
                        address - inside->address, tag_of(*inside), format_site(site)),
            at);
    }
    if (const Allocation* freed = allocations.find_freed(address)) {
        at.push_back({"tag", tag_of(*freed)});
        return add_finding(
            FindingKind::use_after_free,
            fmt::format("second free of \"{}\" ({}); freed before at {}", tag_of(*freed),
                        format_site(site), format_site(freed->freed_at)),
            at);
    }
    add_finding(
        FindingKind::host_pointer,
        fmt::format("free of an address that this device never gave out ({})", format_site(site)),
        at);
}

void Accelerator::find_reentrant(const Caller& caller) {
    add_finding(FindingKind::reentrant_call,
                fmt::format("{} ({}) is called by {}, which must not call its device",
                            caller.text(), format_site(caller.site), log_.describe(running_)),
                {{"operation", caller.text()},
                 {"site", format_site(caller.site)},
                 {"operation", log_.operation(running_)},
                 {"site", format_site(log_[running_].site())}});
}

void Accelerator::refuse_bad(const Caller& caller, const std::string& reason, ErrorFields fields) {
    fields.insert(fields.begin(),
                  {{"operation", caller.text()}, {"site", format_site(caller.site)}});
    add_finding(FindingKind::bad_argument,
                fmt::format("{} ({}): {}", caller.text(), format_site(caller.site), reason),
                fields);
    fields.erase(fields.begin(), fields.begin() + 2);
    refuse(caller, reason, std::move(fields));
}

void Accelerator::find_not_destroyable(std::string_view what, const Caller& caller) {
    add_finding(FindingKind::use_after_free,
                fmt::format("{} of a {} ({})", caller.text(), what, format_site(caller.site)),
                {{"operation", caller.text()}, {"site", format_site(caller.site)}});
}

void Accelerator::find_unwaited(const EventState& event, CallSite destroyed_at) {
    if (event.mark.sequence == 0 || event.awaited) {
        return;
    }
    const std::string& stream = log_.names()[scheduler_.name(event.mark.lane)];
    add_finding(FindingKind::unwaited_event,
                fmt::format("an event recorded on {} ({}{}) was never waited for, synchronized or "
                            "queried",
                            stream, format_site(event.site), destroyed_text(destroyed_at)),
                {{"operation", "record"}, {"stream", stream}, {"site", format_site(event.site)}});
}

void Accelerator::find_pending_work() {
    for (const auto& [touch, destroyed_at] : newest_data_) {
        if (!host_.covers(touch.epoch)) {
            add_finding(FindingKind::pending_work,
                        fmt::format("nobody waited for {}, the last work of its stream{}",
                                    log_.describe(touch.operation), destroyed_text(destroyed_at)),
                        {{"operation", log_.operation(touch.operation)},
                         {"stream", log_.stream(touch.operation)},
                         {"site", format_site(log_[touch.operation].site())}});
        }
    }
}

void Accelerator::find_leaks() {
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::host}) {
        for (const Holder& holder : ledger_.holders(kind, ledger_.live_count(kind))) {
            add_finding(FindingKind::leak,
                        fmt::format("{} of {} memory \"{}\" was never freed (allocated at {})",
                                    format_bytes(holder.requested_bytes), name_of(kind), holder.tag,
                                    format_site(holder.site)),
                        {{"tag", holder.tag},
                         {"bytes", std::to_string(holder.requested_bytes)},
                         {"site", format_site(holder.site)}});
        }
    }
}

std::exception_ptr Accelerator::host_touched(const void* address, Kind kind) {
    const char* verb = kind == Kind::read ? "read" : kind == Kind::write ? "write" : "touch";
    const std::uint64_t at = address_of(address);
    ErrorFields fields{{"rank", fmt::format("rank {}", rank())},
                       {"operation", fmt::format("host {}", verb)}};
    std::string where = "outside of every allocation";
    const Allocation* live = device_memory_.find(at);
    const Allocation* freed = device_memory_.find_freed(at);
    if (live != nullptr) {
        where = fmt::format("byte {} of {} in \"{}\" (allocated at {})",
                            with_thousands(at - live->address), with_thousands(live->bytes),
                            tag_of(*live), format_site(live->site));
        fields.push_back({"tag", tag_of(*live)});
        fields.push_back({"offset_bytes", std::to_string(at - live->address)});
        fields.push_back({"site", format_site(live->site)});
    } else if (freed != nullptr) {
        where = fmt::format("byte {} of \"{}\", freed at {}", with_thousands(at - freed->address),
                            tag_of(*freed), format_site(freed->freed_at));
        fields.push_back({"tag", tag_of(*freed)});
        fields.push_back({"offset_bytes", std::to_string(at - freed->address)});
        fields.push_back({"site", format_site(freed->site)});
    }
    const std::string text = fmt::format(
        "host {} device memory: rank {}, {}\n  do  copy_async into pinned memory, "
        "wait for the event, read there",
        verb, rank(), where);
    findings_.push_back({FindingKind::host_touch, text, fields});
    return std::make_exception_ptr(DeviceError(text, std::move(fields)));
}

}  // namespace swaplab::sim
