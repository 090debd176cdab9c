#include "simulated/page_guard.hpp"

#include "simulated/allocations.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <sys/mman.h>

namespace swaplab::sim {
namespace {

constexpr std::uint64_t page_bytes = pinned_alignment_bytes;

Span pages_around(Span bytes) {
    return {bytes.begin / page_bytes * page_bytes, round_up(bytes.end, page_bytes)};
}

void set_protection(Span pages, int protection) {
    const int failed = ::mprotect(pointer_to(pages.begin), pages.end - pages.begin, protection);
    SWAPLAB_ASSERT(failed == 0, "mprotect of pinned memory failed with error " +
                                    std::to_string(errno) + "; leave page_guards off");
}

}  // namespace

PageGuard::~PageGuard() {
    for (const Guard& guard : guards_) {
        open(guard.pages);
    }
}

void PageGuard::watch(Span pages) {
    watched_[pages.begin] = {
        pages.end,
        std::make_unique<TouchWatch>(pointer_to(pages.begin), pages.end - pages.begin, listener_)};
}

void PageGuard::forget(std::uint64_t begin) {
    const auto found = watched_.find(begin);
    const Span pages{begin, found->second.end};
    std::erase_if(guards_, [pages](const Guard& guard) {
        return guard.pages.begin >= pages.begin && guard.pages.end <= pages.end;
    });
    open(pages);
    watched_.erase(found);
}

void PageGuard::raise(Touch touch, Span bytes, Access access) {
    const Span pages = pages_around(bytes);
    if (SWAPLAB_MUTANT("guard.reads_unguarded") && access == Access::read) {
        return;
    }
    guards_.push_back({touch, pages, access == Access::read ? Level::readable : Level::closed});
    protect(pages);
}

void PageGuard::lower(const VectorClock& host) {
    std::vector<Span> lowered;
    std::erase_if(guards_, [&](const Guard& guard) {
        const bool done = host.covers(guard.touch.epoch) && !SWAPLAB_MUTANT("guard.never_lowered");
        if (done) {
            lowered.push_back(guard.pages);
        }
        return done;
    });
    for (const Span pages : lowered) {
        protect(pages);
    }
}

void PageGuard::open(Span bytes) {
    set_protection(pages_around(bytes), PROT_READ | PROT_WRITE);
}

void PageGuard::open_to(HostTouch touch) noexcept {
    ::mprotect(pointer_to(touch.address / page_bytes * page_bytes), page_bytes,
               PROT_READ | PROT_WRITE);
    if (!passing_ && touch_count_ < touches_.size()) {
        touches_[touch_count_++] = touch;
    }
}

std::vector<PageGuard::HostTouch> PageGuard::take_touches() {
    const auto end = touches_.begin() + static_cast<std::ptrdiff_t>(touch_count_);
    touch_count_ = 0;
    return {touches_.begin(), end};
}

void PageGuard::protect(Span pages) const {
    std::vector<Level> levels((pages.end - pages.begin) / page_bytes, Level::open);
    for (const Guard& guard : guards_) {
        const std::uint64_t end = std::min(guard.pages.end, pages.end);
        for (std::uint64_t at = std::max(guard.pages.begin, pages.begin); at < end;
             at += page_bytes) {
            Level& level = levels[(at - pages.begin) / page_bytes];
            level = SWAPLAB_MUTANT("guard.last_wins") ? guard.level : std::max(level, guard.level);
        }
    }
    static constexpr int protections[] = {PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE};
    for (auto first = levels.begin(); first != levels.end();) {
        const auto last = std::find_if(first, levels.end(),
                                       [level = *first](Level other) { return other != level; });
        const auto address = [&](auto place) {
            return pages.begin + static_cast<std::uint64_t>(place - levels.begin()) * page_bytes;
        };
        set_protection({address(first), address(last)},
                       protections[static_cast<std::size_t>(*first)]);
        first = last;
    }
}

std::vector<Span> PageGuard::pages_of(std::uint64_t operation) const {
    std::vector<Span> pages;
    auto found = std::lower_bound(
        guards_.begin(), guards_.end(), operation,
        [](const Guard& guard, std::uint64_t id) { return guard.touch.operation < id; });
    for (; found != guards_.end() && found->touch.operation == operation; ++found) {
        pages.push_back(found->pages);
    }
    return pages;
}

PageGuard::Passage::Passage(PageGuard& guard, std::uint64_t operation)
    : guard_(guard), operation_(operation) {
    guard_.passing_ = true;
    for (const Span pages : guard_.pages_of(operation_)) {
        open(pages);
    }
}

PageGuard::Passage::~Passage() {
    guard_.passing_ = false;
    for (const Span pages : guard_.pages_of(operation_)) {
        guard_.protect(pages);
    }
}

}  // namespace swaplab::sim
