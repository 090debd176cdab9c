#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include "swaplab/sim/units.hpp"

namespace swaplab::sim {
namespace {

std::string describe(const OutOfDeviceMemory::Report& report) {
    const std::uint64_t free_bytes = report.capacity_bytes - report.charged_bytes;
    std::string text = fmt::format("out of device memory: rank {}, {}\n  asked {}, free {} of {}",
                                   report.rank, report.tag, format_bytes(report.requested_bytes),
                                   format_bytes(free_bytes), format_bytes(report.capacity_bytes));
    std::uint64_t requested_sum = 0;
    std::uint64_t rounded_sum = 0;
    for (const Holder& holder : report.by_tag) {
        requested_sum += holder.requested_bytes;
        rounded_sum += holder.rounded_bytes;
    }
    for (const Holder& holder : report.by_tag) {
        const double share = requested_sum == 0
                                 ? 0.0
                                 : 100.0 * static_cast<double>(holder.requested_bytes) /
                                       static_cast<double>(requested_sum);
        text += fmt::format("\n  held  {} B  {:.1f} %  {}", with_thousands(holder.requested_bytes),
                            share, holder.tag);
    }
    text += fmt::format("\n  sum {} requested, {} in regions of 256 B", format_bytes(requested_sum),
                        format_bytes(rounded_sum));
    return text;
}

ErrorFields fields_of(const OutOfDeviceMemory::Report& report) {
    ErrorFields fields{{"rank", fmt::format("rank {}", report.rank)},
                       {"tag", report.tag},
                       {"requested_bytes", std::to_string(report.requested_bytes)},
                       {"capacity_bytes", std::to_string(report.capacity_bytes)}};
    for (const Holder& holder : report.holders) {
        fields.push_back({"holder", holder.tag});
    }
    return fields;
}

}  // namespace

std::string_view name_of(ErrorKind kind) noexcept {
    switch (kind) {
        case ErrorKind::rejected: return "rejected";
        case ErrorKind::corrupt: return "corrupt";
        case ErrorKind::torn: return "torn";
        case ErrorKind::out_of_memory: return "out_of_memory";
        case ErrorKind::storage: return "storage";
        case ErrorKind::rank_lost: return "rank_lost";
        case ErrorKind::collective_mismatch: return "collective_mismatch";
        case ErrorKind::deadline: return "deadline";
        case ErrorKind::device: return "device";
        case ErrorKind::argument: return "argument";
    }
    return "argument";
}

OutOfDeviceMemory::OutOfDeviceMemory(Report report)
    : report_(std::move(report)), fields_(fields_of(report_)), text_(describe(report_)) {}

}  // namespace swaplab::sim
