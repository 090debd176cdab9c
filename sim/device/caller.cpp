#include "device/caller.hpp"

#include <fmt/format.h>

#include <utility>

namespace swaplab::sim {

std::string Caller::text() const {
    return std::string(operation) + (subject.empty() ? "" : " ") + std::string(subject);
}

ArgumentError refusal(int rank, const Caller& caller, const std::string& reason,
                      ErrorFields fields) {
    const std::string site = format_site(caller.site);
    fields.insert(fields.begin(), {{"rank", fmt::format("rank {}", rank)},
                                   {"operation", caller.text()},
                                   {"site", site}});
    return ArgumentError(
        fmt::format("{} refused: rank {}, {} ({})", caller.text(), rank, reason, site),
        std::move(fields));
}

}  // namespace swaplab::sim
