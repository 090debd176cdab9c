#include "swaplab/sim/memory_ledger.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <tuple>

namespace swaplab::sim {
namespace {

template <class Enum>
constexpr std::size_t index(Enum value) noexcept {
    return static_cast<std::size_t>(value);
}

constexpr std::size_t charged = index(Lifetime::charged);

template <class Tags>
std::vector<Holder> largest_first(const Tags& tags) {
    std::vector<Holder> holders;
    for (const auto& [tag, sum] : tags) {
        holders.push_back({tag, sum.requested_bytes, sum.rounded_bytes, {}});
    }
    std::stable_sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
        return a.requested_bytes > b.requested_bytes;
    });
    return holders;
}

}  // namespace

std::string_view name_of(MemoryKind kind) noexcept {
    switch (kind) {
        case MemoryKind::device:
            return "device";
        case MemoryKind::pinned:
            return "pinned";
        case MemoryKind::host:
            return "host";
    }
    return "host";
}

MemoryLedger::Id MemoryLedger::charge(MemoryKind kind, std::uint64_t requested_bytes,
                                      std::uint64_t rounded_bytes, std::string_view tag,
                                      CallSite site) {
    SWAPLAB_ASSERT(requested_bytes > 0 && rounded_bytes >= requested_bytes,
                   "an allocation of " + std::to_string(requested_bytes) + " B charged as " +
                       std::to_string(rounded_bytes) + " B");
    const Id id = next_id_++;
    const Entry& entry =
        entries_
            .emplace(id, Entry{kind, requested_bytes, rounded_bytes, std::string(tag), site, true})
            .first->second;
    TagSum& sum = tags_[index(kind)][entry.tag];
    sum.requested_bytes += requested_bytes;
    sum.rounded_bytes += rounded_bytes;
    add(Lifetime::occupied, entry);
    add(Lifetime::charged, entry);
    return id;
}

void MemoryLedger::discharge(Id id) noexcept {
    const auto found = entries_.find(id);
    SWAPLAB_ASSERT(found != entries_.end() && found->second.charged,
                   "allocation " + std::to_string(id) + " is not charged");
    Entry& entry = found->second;
    leave_peak(entry.kind);
    Tags& tags = tags_[index(entry.kind)];
    const auto tag = tags.find(entry.tag);
    SWAPLAB_ASSERT(tag != tags.end() && tag->second.requested_bytes >= entry.requested_bytes,
                   "tag " + entry.tag + " holds less than its allocation");
    if (!SWAPLAB_MUTANT("ledger.tag_stays")) {
        tag->second.requested_bytes -= entry.requested_bytes;
        tag->second.rounded_bytes -= entry.rounded_bytes;
    }
    if (tag->second.requested_bytes == 0) {
        tags.erase(tag);
    }
    entry.charged = false;
    subtract(Lifetime::charged, entry);
}

void MemoryLedger::vacate(Id id) noexcept {
    const auto found = entries_.find(id);
    SWAPLAB_ASSERT(found != entries_.end() && !found->second.charged,
                   "allocation " + std::to_string(id) + " is still charged");
    subtract(Lifetime::occupied, found->second);
    entries_.erase(found);
}

std::uint64_t MemoryLedger::now(MemoryKind kind, Size size, Lifetime lifetime) const noexcept {
    return now_[index(kind)][index(size)][index(lifetime)];
}

std::uint64_t MemoryLedger::peak(MemoryKind kind, Size size, Lifetime lifetime) const noexcept {
    return peak_from(0, kind, size, lifetime);
}

std::uint64_t MemoryLedger::tagged(MemoryKind kind, std::string_view tag) const {
    const Tags& tags = tags_[index(kind)];
    const auto found = tags.find(tag);
    return found == tags.end() ? 0 : found->second.requested_bytes;
}

std::vector<Holder> MemoryLedger::holders(MemoryKind kind, std::size_t count_max) const {
    std::vector<const Entry*> live;
    for (const auto& [id, entry] : entries_) {
        if (entry.kind == kind && entry.charged) {
            live.push_back(&entry);
        }
    }
    std::stable_sort(live.begin(), live.end(), [](const Entry* a, const Entry* b) {
        return std::tie(b->requested_bytes, a->tag) < std::tie(a->requested_bytes, b->tag);
    });
    live.resize(std::min(live.size(), count_max));
    std::vector<Holder> result;
    for (const Entry* entry : live) {
        result.push_back({entry->tag, entry->requested_bytes, entry->rounded_bytes, entry->site});
    }
    return result;
}

std::vector<Holder> MemoryLedger::by_tag(MemoryKind kind) const {
    return largest_first(tags_[index(kind)]);
}

std::vector<Holder> MemoryLedger::by_tag_at_peak(MemoryKind kind) const {
    return tags_from(0, kind);
}

std::size_t MemoryLedger::live_count(MemoryKind kind) const noexcept {
    return static_cast<std::size_t>(std::count_if(
        entries_.begin(), entries_.end(),
        [kind](const auto& item) { return item.second.kind == kind && item.second.charged; }));
}

void MemoryLedger::add(Lifetime lifetime, const Entry& entry) noexcept {
    Frame& frame = frames_.back();
    const std::size_t kind = index(entry.kind);
    for (const Size size : {Size::requested, Size::rounded}) {
        std::uint64_t& value = now_[kind][index(size)][index(lifetime)];
        value += size == Size::requested ? entry.requested_bytes : entry.rounded_bytes;
        std::uint64_t& peak = frame.peak[kind][index(size)][index(lifetime)];
        if (value <= peak) {
            continue;
        }
        peak = value;
        if (lifetime == Lifetime::charged && size == Size::requested) {
            frame.at_peak[kind] = true;
        }
    }
}

void MemoryLedger::subtract(Lifetime lifetime, const Entry& entry) noexcept {
    const std::size_t kind = index(entry.kind);
    for (const Size size : {Size::requested, Size::rounded}) {
        std::uint64_t& value = now_[kind][index(size)][index(lifetime)];
        const std::uint64_t bytes =
            size == Size::requested ? entry.requested_bytes : entry.rounded_bytes;
        SWAPLAB_ASSERT(value >= bytes, "the ledger would go negative at " + entry.tag);
        value -= bytes;
    }
    SWAPLAB_ASSERT((now(entry.kind) == 0) == tags_[kind].empty(),
                   "tags do not sum up to the total after " + entry.tag);
}

// A copy of the tags is taken when a peak is left, not when it is reached: a rising ledger would
// otherwise copy them at every allocation.
void MemoryLedger::leave_peak(MemoryKind kind) {
    Frame& frame = frames_.back();
    if (frame.at_peak[index(kind)]) {
        check_tags(kind);
        frame.tags_at_peak[index(kind)] = tags_[index(kind)];
        frame.at_peak[index(kind)] = false;
    }
}

void MemoryLedger::check_tags(MemoryKind kind) const {
    std::uint64_t sum = 0;
    for (const auto& [tag, bytes] : tags_[index(kind)]) {
        sum += bytes.requested_bytes;
    }
    SWAPLAB_ASSERT(sum == now(kind), "tags sum up to " + std::to_string(sum) + " B, the total is " +
                                         std::to_string(now(kind)) + " B");
}

std::uint64_t MemoryLedger::peak_from(std::size_t depth, MemoryKind kind, Size size,
                                      Lifetime lifetime) const noexcept {
    std::uint64_t highest = 0;
    for (std::size_t i = depth; i < frames_.size(); ++i) {
        highest = std::max(highest, frames_[i].peak[index(kind)][index(size)][index(lifetime)]);
    }
    return highest;
}

std::vector<Holder> MemoryLedger::tags_from(std::size_t depth, MemoryKind kind) const {
    const std::uint64_t highest = peak_from(depth, kind, Size::requested, Lifetime::charged);
    const auto frame = std::find_if(
        frames_.begin() + static_cast<std::ptrdiff_t>(depth), frames_.end(), [&](const Frame& f) {
            return f.peak[index(kind)][index(Size::requested)][charged] == highest;
        });
    return largest_first(frame->at_peak[index(kind)] ? tags_[index(kind)]
                                                     : frame->tags_at_peak[index(kind)]);
}

MemoryLedger::Window::Window(MemoryLedger& ledger)
    : ledger_(ledger), depth_(ledger.frames_.size()) {
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::host}) {
        ledger_.leave_peak(kind);
    }
    ledger_.frames_.push_back({ledger_.now_, ledger_.now_, {}, {true, true, true}});
}

MemoryLedger::Window::~Window() {
    SWAPLAB_ASSERT(ledger_.frames_.size() == depth_ + 1, "windows must close in reverse order");
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::host}) {
        ledger_.leave_peak(kind);
    }
    Frame inner = std::move(ledger_.frames_.back());
    ledger_.frames_.pop_back();
    if (SWAPLAB_MUTANT("ledger.window_keeps_peak")) {
        return;
    }
    Frame& outer = ledger_.frames_.back();
    for (std::size_t kind = 0; kind < memory_kind_count; ++kind) {
        if (inner.peak[kind][index(Size::requested)][charged] >
            outer.peak[kind][index(Size::requested)][charged]) {
            outer.tags_at_peak[kind] = std::move(inner.tags_at_peak[kind]);
        }
        for (std::size_t size = 0; size < 2; ++size) {
            for (std::size_t lifetime = 0; lifetime < 2; ++lifetime) {
                outer.peak[kind][size][lifetime] =
                    std::max(outer.peak[kind][size][lifetime], inner.peak[kind][size][lifetime]);
            }
        }
    }
}

std::uint64_t MemoryLedger::Window::before(MemoryKind kind, Size size,
                                           Lifetime lifetime) const noexcept {
    return ledger_.frames_[depth_].before[index(kind)][index(size)][index(lifetime)];
}

std::uint64_t MemoryLedger::Window::peak(MemoryKind kind, Size size,
                                         Lifetime lifetime) const noexcept {
    return ledger_.peak_from(depth_, kind, size, lifetime);
}

std::uint64_t MemoryLedger::Window::rise(MemoryKind kind, Size size,
                                         Lifetime lifetime) const noexcept {
    return peak(kind, size, lifetime) - before(kind, size, lifetime);
}

std::int64_t MemoryLedger::Window::kept(MemoryKind kind, Size size,
                                        Lifetime lifetime) const noexcept {
    return static_cast<std::int64_t>(ledger_.now(kind, size, lifetime)) -
           static_cast<std::int64_t>(before(kind, size, lifetime));
}

std::vector<Holder> MemoryLedger::Window::by_tag_at_peak(MemoryKind kind) const {
    return ledger_.tags_from(depth_, kind);
}

}  // namespace swaplab::sim
