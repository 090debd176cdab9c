#include "swaplab/sim/error.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::sim {
namespace {

constexpr std::size_t tags_shown_max = 10;
constexpr std::size_t holders_shown_max = 3;

std::string tags_text(const std::vector<Holder>& by_tag) {
    std::uint64_t requested_sum = 0;
    std::uint64_t rounded_sum = 0;
    for (const Holder& holder : by_tag) {
        requested_sum += holder.requested_bytes;
        rounded_sum += holder.rounded_bytes;
    }
    std::string text;
    const std::size_t shown = std::min(by_tag.size(), tags_shown_max);
    for (std::size_t i = 0; i < shown; ++i) {
        const double share = requested_sum == 0
                                 ? 0.0
                                 : 100.0 * static_cast<double>(by_tag[i].requested_bytes) /
                                       static_cast<double>(requested_sum);
        text += fmt::format("\n  held  {} B  {:.1f} %  {}",
                            with_thousands(by_tag[i].requested_bytes), share, by_tag[i].tag);
        text += by_tag[i].count == 1 ? "" : fmt::format("  x {}", by_tag[i].count);
    }
    if (shown < by_tag.size()) {
        text += fmt::format("\n  held  by {} tags more", by_tag.size() - shown);
    }
    return text + fmt::format("\n  sum {} requested, {} as charged", format_bytes(requested_sum),
                              format_bytes(rounded_sum));
}

std::string describe(const OutOfDeviceMemory::Report& report) {
    std::string text =
        fmt::format("out of {} memory: rank {}, {}\n  asked {}, free {} of {}, largest hole {}",
                    report.memory, report.rank, report.tag, format_bytes(report.requested_bytes),
                    format_bytes(report.free_bytes()), format_bytes(report.capacity_bytes),
                    format_bytes(report.largest_hole_bytes));
    if (report.context_bytes > 0) {
        text += fmt::format("\n  {} are the context's", format_bytes(report.context_bytes));
    }
    if (report.reserved_bytes > 0) {
        text +=
            fmt::format("\n  reserved {}, of which {} are allocated",
                        format_bytes(report.reserved_bytes), format_bytes(report.charged_bytes));
    }
    text += tags_text(report.by_tag);
    for (std::size_t i = 0; i < std::min(report.holders.size(), holders_shown_max); ++i) {
        const Holder& holder = report.holders[i];
        text += fmt::format("\n  largest  {} B  {}", with_thousands(holder.requested_bytes),
                            holder.tag);
        text += holder.site.line == 0 ? "" : fmt::format("  ({})", format_site(holder.site));
    }
    if (report.pending_bytes > 0) {
        text += fmt::format("\n  {} are given back, but still in use; waiting for that would {}",
                            format_bytes(report.pending_bytes),
                            report.waiting_suffices ? "have sufficed" : "not have sufficed");
    }
    return text;
}

ErrorFields fields_of(const OutOfDeviceMemory::Report& report) {
    ErrorFields fields{{"rank", fmt::format("rank {}", report.rank)},
                       {"tag", report.tag},
                       {"requested_bytes", std::to_string(report.requested_bytes)},
                       {"charged_bytes", std::to_string(report.rounded_bytes)},
                       {"capacity_bytes", std::to_string(report.capacity_bytes)},
                       {"context_bytes", std::to_string(report.context_bytes)},
                       {"memory", report.memory},
                       {"reserved_bytes", std::to_string(report.reserved_bytes)},
                       {"free_bytes", std::to_string(report.free_bytes())},
                       {"largest_hole_bytes", std::to_string(report.largest_hole_bytes)},
                       {"pending_bytes", std::to_string(report.pending_bytes)},
                       {"waiting_suffices", report.waiting_suffices ? "true" : "false"}};
    for (const Holder& holder : report.holders) {
        fields.push_back({"holder", holder.tag});
    }
    return fields;
}

}  // namespace

std::string_view name_of(ErrorKind kind) noexcept {
    switch (kind) {
        case ErrorKind::rejected:
            return "rejected";
        case ErrorKind::corrupt:
            return "corrupt";
        case ErrorKind::torn:
            return "torn";
        case ErrorKind::out_of_memory:
            return "out_of_memory";
        case ErrorKind::storage:
            return "storage";
        case ErrorKind::rank_lost:
            return "rank_lost";
        case ErrorKind::collective_mismatch:
            return "collective_mismatch";
        case ErrorKind::deadline:
            return "deadline";
        case ErrorKind::device:
            return "device";
        case ErrorKind::argument:
            return "argument";
    }
    return "argument";
}

OutOfDeviceMemory::OutOfDeviceMemory(Report report)
    : report_(std::move(report)), fields_(fields_of(report_)), text_(describe(report_)) {}

}  // namespace swaplab::sim
