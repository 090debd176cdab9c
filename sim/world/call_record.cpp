#include "swaplab/sim/call_record.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace swaplab::sim {
namespace {

template <std::size_t N>
void copy_text(char (&to)[N], std::string_view text) {
    *std::copy_n(text.begin(), std::min(text.size(), N - 1), to) = '\0';
}

// Longer ones keep their beginning and stay distinct.
std::string shortened(std::string_view text, std::size_t size_max) {
    return text.size() <= size_max
               ? std::string(text)
               : fmt::format("{}~{:016x}", text.substr(0, size_max - 17), hash_text(text));
}

// Behind the end of a text there are zeros.
template <std::size_t N>
bool same_text(const char (&a)[N], const char (&b)[N]) {
    return std::memcmp(a, b, N) == 0;
}

}  // namespace

CallRecord record_of(const CollectiveCall& call) {
    CallRecord record;
    record.sequence = call.sequence;
    record.count = call.count;
    record.root = call.root;
    record.line = call.site.line;
    copy_text(record.group, shortened(call.group, sizeof(record.group) - 1));
    copy_text(record.purpose, shortened(call.purpose, sizeof(record.purpose) - 1));
    copy_text(record.operation, call.operation);
    copy_text(record.dtype, call.dtype);
    const std::string_view path = call.site.file;
    copy_text(record.file, path.substr(path.find_last_of('/') + 1));
    return record;
}

bool same_call(const CallRecord& a, const CallRecord& b) noexcept {
    return a.sequence == b.sequence && a.count == b.count && a.root == b.root &&
           same_text(a.group, b.group) && same_text(a.operation, b.operation) &&
           same_text(a.dtype, b.dtype) &&
           (same_text(a.purpose, b.purpose) || SWAPLAB_MUTANT("world.purpose_unchecked"));
}

std::string site_of(const CallRecord& record) {
    return fmt::format("{}:{}", record.file, record.line);
}

std::string describe(const CallRecord& record) {
    std::string text = fmt::format("{} {}", record.operation, record.sequence);
    if (record.count != 0) {
        text += fmt::format(" of {} {}", record.count, record.dtype);
    }
    if (record.root >= 0) {
        text += fmt::format(" from root {}", record.root);
    }
    if (record.purpose[0] != '\0') {
        text += fmt::format(" for \"{}\"", record.purpose);
    }
    if (std::string_view(record.group) != "world") {
        text += fmt::format(" in {}", record.group);
    }
    return fmt::format("{} ({})", text, site_of(record));
}

void require_same_calls(std::span<const MemberCall> calls) {
    const auto same_as_first = [&](const MemberCall& one) {
        return same_call(one.call, calls.front().call);
    };
    if (std::all_of(calls.begin(), calls.end(), same_as_first)) {
        return;
    }
    std::string text = "ranks called different collectives";
    ErrorFields fields;
    for (const auto& [rank, call] : calls) {
        text += fmt::format("{} rank {}: {}", fields.empty() ? ":" : ";", rank, describe(call));
        if (!same_call(call, calls.front().call)) {
            fields.push_back({"expected", describe(calls.front().call)});
            fields.push_back({"found", describe(call)});
        }
        fields.push_back({"rank", fmt::format("rank {}", rank)});
        fields.push_back({"operation", call.operation});
        fields.push_back({"sequence", std::to_string(call.sequence)});
        fields.push_back({"dtype", call.dtype});
        fields.push_back({"count", std::to_string(call.count)});
        fields.push_back({"root", std::to_string(call.root)});
        fields.push_back({"purpose", call.purpose});
        fields.push_back({"group", call.group});
        fields.push_back({"site", site_of(call)});
    }
    text += "\n  do  call the same operations in the same order on every rank";
    throw CollectiveMismatch(text, std::move(fields));
}

}  // namespace swaplab::sim
