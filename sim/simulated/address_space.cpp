#include "simulated/address_space.hpp"

#include <algorithm>
#include <iterator>

namespace swaplab::sim {
namespace {

/// How many regions of the right size are looked at before another hole is taken.
constexpr std::ptrdiff_t tries_max = 16;

}  // namespace

std::optional<std::uint64_t> AddressSpace::take(std::uint64_t bytes, const VectorClock& clock,
                                                const VectorClock& host) {
    if (const auto offset = take_freed(bytes, clock)) {
        return offset;
    }
    if (freed_bytes_ >= join_at_bytes_) {
        join(host);
        join_at_bytes_ = std::max(join_at_bytes_, 2 * freed_bytes_);
    }
    if (const auto offset = take_hole(bytes)) {
        return offset;
    }
    join(host);
    if (const auto offset = take_hole(bytes)) {
        return offset;
    }
    return take_run(bytes, clock);
}

std::optional<std::uint64_t> AddressSpace::take_freed(std::uint64_t bytes,
                                                      const VectorClock& clock) {
    const auto same_size = freed_.find(bytes);
    if (same_size == freed_.end()) {
        return std::nullopt;
    }
    std::vector<Freed>& regions = same_size->second;
    const auto end = regions.rbegin() + std::min(std::ssize(regions), tries_max);
    const auto found = std::find_if(
        regions.rbegin(), end, [&clock](const Freed& region) { return clock.covers(region.at); });
    if (found == end) {
        return std::nullopt;
    }
    const std::uint64_t offset = found->offset;
    regions.erase(std::prev(found.base()));
    freed_bytes_ -= bytes;
    return offset;
}

std::optional<std::uint64_t> AddressSpace::take_hole(std::uint64_t bytes) {
    const auto found = holes_by_size_.lower_bound({bytes, 0});
    if (found == holes_by_size_.end()) {
        return std::nullopt;
    }
    const auto [size, offset] = *found;
    remove_hole(holes_.find(offset));
    if (size > bytes) {
        add_hole(offset + bytes, size - bytes);
    }
    return offset;
}

std::vector<AddressSpace::Piece> AddressSpace::pieces_for(const VectorClock& clock) const {
    std::vector<Piece> pieces;
    for (const auto& [offset, size] : holes_) {
        pieces.push_back({offset, size, {}});
    }
    for (const auto& [size, regions] : freed_) {
        for (const Freed& region : regions) {
            if (clock.covers(region.at)) {
                pieces.push_back({region.offset, size, region.at});
            }
        }
    }
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
    return pieces;
}

std::uint64_t AddressSpace::largest(const VectorClock& clock) const {
    std::uint64_t largest = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    for (const Piece& piece : pieces_for(clock)) {
        begin = piece.offset == end ? begin : piece.offset;
        end = piece.end();
        largest = std::max(largest, end - begin);
    }
    return largest;
}

std::optional<std::uint64_t> AddressSpace::take_run(std::uint64_t bytes, const VectorClock& clock) {
    const std::vector<Piece> pieces = pieces_for(clock);
    std::size_t first = 0;
    for (std::size_t last = 0; last < pieces.size(); ++last) {
        if (last > first && pieces[last - 1].end() != pieces[last].offset) {
            first = last;
        }
        if (pieces[last].end() - pieces[first].offset >= bytes) {
            take_pieces({&pieces[first], &pieces[last] + 1}, bytes);
            return pieces[first].offset;
        }
    }
    return std::nullopt;
}

void AddressSpace::take_pieces(std::span<const Piece> run, std::uint64_t bytes) {
    for (const Piece& piece : run) {
        if (piece.freed_at.sequence == 0) {
            remove_hole(holes_.find(piece.offset));
        } else {
            std::erase_if(freed_[piece.bytes],
                          [&piece](const Freed& region) { return region.offset == piece.offset; });
            freed_bytes_ -= piece.bytes;
        }
    }
    const Piece& last = run.back();
    const std::uint64_t end = run.front().offset + bytes;
    if (last.end() == end) {
        return;
    }
    if (last.freed_at.sequence == 0) {
        add_hole(end, last.end() - end);
    } else {
        give_back(end, last.end() - end, last.freed_at);
    }
}

void AddressSpace::join(const VectorClock& clock) {
    for (auto& [bytes, regions] : freed_) {
        std::erase_if(regions, [&, size = bytes](const Freed& region) {
            if (!clock.covers(region.at)) {
                return false;
            }
            add_hole(region.offset, size);
            freed_bytes_ -= size;
            return true;
        });
    }
}

void AddressSpace::add_hole(std::uint64_t offset, std::uint64_t bytes) {
    const auto after = holes_.lower_bound(offset);
    if (after != holes_.end() && after->first == offset + bytes) {
        bytes += after->second;
        remove_hole(after);
    }
    const auto next = holes_.lower_bound(offset);
    if (next != holes_.begin()) {
        const auto before = std::prev(next);
        if (before->first + before->second == offset) {
            offset = before->first;
            bytes += before->second;
            remove_hole(before);
        }
    }
    holes_.emplace(offset, bytes);
    holes_by_size_.emplace(bytes, offset);
}

void AddressSpace::remove_hole(std::map<std::uint64_t, std::uint64_t>::iterator hole) {
    holes_by_size_.erase({hole->second, hole->first});
    holes_.erase(hole);
}

}  // namespace swaplab::sim
