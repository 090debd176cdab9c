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

MemoryLedger::TagId MemoryLedger::intern(std::string_view tag) {
    const auto found = tag_ids_.find(tag);
    if (found != tag_ids_.end()) {
        return found->second;
    }
    const auto id = static_cast<TagId>(tag_texts_.size());
    tag_ids_.emplace(tag_texts_.emplace_back(tag), id);
    return id;
}

MemoryLedger::Entry& MemoryLedger::entry(Id id) {
    const std::uint64_t place = id & 0xffffffffU;
    SWAPLAB_ASSERT(place < entries_.size() && entries_[place].generation == id >> 32U &&
                       !entries_[place].vacated,
                   "allocation " + std::to_string(id) + " is not charged");
    return entries_[place];
}

MemoryLedger::Id MemoryLedger::charge(MemoryKind kind, std::uint64_t requested_bytes,
                                      std::uint64_t rounded_bytes, std::string_view tag,
                                      CallSite site) {
    SWAPLAB_ASSERT(requested_bytes > 0 && rounded_bytes >= requested_bytes,
                   "an allocation of " + std::to_string(requested_bytes) + " B charged as " +
                       std::to_string(rounded_bytes) + " B");
    if (unused_.empty()) {
        unused_.push_back(static_cast<std::uint32_t>(entries_.size()));
        entries_.emplace_back();
    }
    const std::uint32_t place = unused_.back();
    unused_.pop_back();
    Entry& entry = entries_[place];
    entry = {entry.generation + 1, kind,          true, false, false, intern(tag), ++charges_,
             requested_bytes,      rounded_bytes, site};
    Tags& tags = tags_[index(kind)];
    if (entry.tag >= tags.size()) {
        tags.resize(entry.tag + std::size_t{1});
    }
    held_tags_[index(kind)] += tags[entry.tag].requested_bytes == 0 ? 1U : 0U;
    tags[entry.tag].requested_bytes += requested_bytes;
    tags[entry.tag].rounded_bytes += rounded_bytes;
    ++tags[entry.tag].count;
    ++live_[index(kind)];
    add(Lifetime::charged, entry);
    return Id{entry.generation} << 32U | place;
}

void MemoryLedger::occupy(Id id) noexcept {
    Entry& fresh = entry(id);
    SWAPLAB_ASSERT(!fresh.occupied, "allocation " + std::to_string(id) + " is occupied already");
    fresh.occupied = true;
    add(Lifetime::occupied, fresh);
}

void MemoryLedger::discharge(Id id) noexcept {
    Entry& gone = entry(id);
    SWAPLAB_ASSERT(gone.charged, "allocation " + std::to_string(id) + " is not charged");
    leave_peak(gone.kind);
    TagSum& sum = tags_[index(gone.kind)][gone.tag];
    SWAPLAB_ASSERT(sum.requested_bytes >= gone.requested_bytes,
                   "tag " + tag_texts_[gone.tag] + " holds less than its allocation");
    if (!SWAPLAB_MUTANT("ledger.tag_stays")) {
        sum.requested_bytes -= gone.requested_bytes;
        sum.rounded_bytes -= gone.rounded_bytes;
        --sum.count;
    }
    held_tags_[index(gone.kind)] -= sum.requested_bytes == 0 ? 1U : 0U;
    gone.charged = false;
    --live_[index(gone.kind)];
    subtract(Lifetime::charged, gone);
}

void MemoryLedger::vacate(Id id) noexcept {
    Entry& gone = entry(id);
    SWAPLAB_ASSERT(!gone.charged, "allocation " + std::to_string(id) + " is still charged");
    SWAPLAB_ASSERT(gone.occupied, "allocation " + std::to_string(id) + " is not occupied");
    subtract(Lifetime::occupied, gone);
    gone.occupied = false;
    gone.vacated = true;
    unused_.push_back(static_cast<std::uint32_t>(id & 0xffffffffU));
}

std::uint64_t MemoryLedger::now(MemoryKind kind, Size size, Lifetime lifetime) const noexcept {
    return now_[index(kind)][index(size)][index(lifetime)];
}

std::uint64_t MemoryLedger::peak(MemoryKind kind, Size size, Lifetime lifetime) const noexcept {
    return peak_from(0, kind, size, lifetime);
}

std::uint64_t MemoryLedger::pending_bytes(MemoryKind kind) const noexcept {
    std::uint64_t bytes = 0;
    for (const Entry& each : entries_) {
        bytes += each.kind == kind && !each.charged && !each.vacated ? each.rounded_bytes : 0;
    }
    return bytes;
}

std::uint64_t MemoryLedger::tagged(MemoryKind kind, std::string_view tag) const {
    const auto found = tag_ids_.find(tag);
    const Tags& tags = tags_[index(kind)];
    return found == tag_ids_.end() || found->second >= tags.size()
               ? 0
               : tags[found->second].requested_bytes;
}

std::vector<Holder> MemoryLedger::holders(MemoryKind kind, std::size_t count_max) const {
    std::vector<const Entry*> live;
    for (const Entry& each : entries_) {
        if (each.kind == kind && each.charged) {
            live.push_back(&each);
        }
    }
    const std::size_t count = std::min(live.size(), count_max);
    std::partial_sort(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(count), live.end(),
                      [this](const Entry* a, const Entry* b) {
                          return std::tie(b->requested_bytes, tag_texts_[a->tag], a->order) <
                                 std::tie(a->requested_bytes, tag_texts_[b->tag], b->order);
                      });
    live.resize(count);
    std::vector<Holder> result;
    for (const Entry* each : live) {
        result.push_back(
            {tag_texts_[each->tag], each->requested_bytes, each->rounded_bytes, each->site});
    }
    return result;
}

std::vector<Holder> MemoryLedger::largest_first(const Tags& tags) const {
    std::vector<Holder> holders;
    for (std::size_t id = 0; id < tags.size(); ++id) {
        if (tags[id].requested_bytes > 0) {
            holders.push_back({tag_texts_[id],
                               tags[id].requested_bytes,
                               tags[id].rounded_bytes,
                               {},
                               tags[id].count});
        }
    }
    std::sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
        return std::tie(b.requested_bytes, a.tag) < std::tie(a.requested_bytes, b.tag);
    });
    return holders;
}

std::vector<Holder> MemoryLedger::by_tag(MemoryKind kind) const {
    return largest_first(tags_[index(kind)]);
}

std::vector<Holder> MemoryLedger::by_tag_at_peak(MemoryKind kind) const {
    return tags_from(0, kind);
}

std::size_t MemoryLedger::live_count(MemoryKind kind) const noexcept {
    return live_[index(kind)];
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
        SWAPLAB_ASSERT(value >= bytes, "the ledger would go negative at " + tag_texts_[entry.tag]);
        value -= bytes;
    }
    SWAPLAB_ASSERT((now(entry.kind) == 0) == (held_tags_[kind] == 0),
                   "tags do not sum up to the total after " + tag_texts_[entry.tag]);
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
    for (const TagSum& tag : tags_[index(kind)]) {
        sum += tag.requested_bytes;
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
