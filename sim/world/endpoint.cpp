#include "world/endpoint.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

namespace swaplab::sim {
namespace {

std::uint64_t bit_of(int rank) {
    return std::uint64_t{1} << static_cast<unsigned>(rank);
}

/// Calls `visit(rank)` for the ranks of a set, in ascending order.
template <class F>
void each_rank(std::uint64_t ranks, F visit) {
    for (; ranks != 0; ranks &= ranks - 1) {
        visit(std::countr_zero(ranks));
    }
}

}  // namespace

/// One exchange of one rank.
///
/// Every member shows its call together with the first block of its bytes, waits for those of all
/// others, compares, takes its part of each block and says so. Members with more bytes go on with
/// their next block; everybody knows from the first how many there are. A rank has two outboxes and
/// fills one while the other is still being read.
class Transfer {
  public:
    Transfer(Endpoint& endpoint, const CallRecord& call, std::span<const int> members,
             const Outgoing& mine, Incoming& theirs)
        : endpoint_(endpoint),
          world_(endpoint.world_),
          board_(endpoint.world_.board()),
          call_(call),
          members_(members),
          mine_(mine),
          theirs_(theirs),
          stream_bytes_(members.size(), 0) {
        for (const int member : members) {
            peers_ |= bit_of(member);
        }
        peers_ &= ~bit_of(endpoint.rank_);
    }

    void run() {
        const std::uint64_t block_bytes = block(0).size();
        std::uint64_t longest = 0;
        for (std::uint64_t begin = 0; begin == 0 || begin < longest; begin += block_bytes) {
            if (begin == 0 || begin < mine_.bytes.size()) {
                show(begin);
            }
            await(givers_at(begin), 0);
            if (begin == 0) {
                at(RankPhase::arrived);
                compare(peers_);
                at(RankPhase::compared);
                longest = expect();
            } else {
                at(RankPhase::next_block);
            }
            take(begin);
        }
        at(RankPhase::done);
    }

  private:
    void at(RankPhase phase) { world_.at(endpoint_.rank_, phase); }
    [[nodiscard]] Slot& slot(int rank) { return board_.slot(endpoint_.channel_, rank); }
    [[nodiscard]] std::span<std::byte> block(std::size_t outbox) {
        return board_.block(endpoint_.channel_, endpoint_.rank_, outbox);
    }

    [[nodiscard]] std::size_t index_of(int rank) const {
        return static_cast<std::size_t>(std::find(members_.begin(), members_.end(), rank) -
                                        members_.begin());
    }

    /// The others that show a block at this place.
    [[nodiscard]] std::uint64_t givers_at(std::uint64_t begin) const {
        if (begin == 0) {
            return peers_;
        }
        std::uint64_t givers = 0;
        for (std::size_t member = 0; member < members_.size(); ++member) {
            givers |= begin < stream_bytes_[member] ? bit_of(members_[member]) : 0;
        }
        return givers & peers_;
    }

    /// The outbox of `giver` that this rank has to read next: of two, the one filled first.
    [[nodiscard]] std::optional<std::size_t> shown_to(int giver, int reader) {
        const Slot& from = slot(giver);
        std::optional<std::size_t> first;
        std::uint64_t first_stamp = 0;
        for (std::size_t outbox = 0; outbox < 2; ++outbox) {
            if ((from.unread[outbox].load() & bit_of(reader)) != 0) {
                const std::uint64_t stamp = from.stamps[outbox].load();
                if (!first || stamp < first_stamp) {
                    first = outbox;
                    first_stamp = stamp;
                }
            }
        }
        return first;
    }

    /// Does `rank` have all that it waits for?
    [[nodiscard]] bool satisfied(int rank, std::uint64_t givers, std::uint32_t drains) {
        bool all = true;
        each_rank(givers, [&](int giver) { all = all && shown_to(giver, rank).has_value(); });
        return all && (drains == 0 || slot(rank).unread[drains - 1].load() == 0);
    }

    void show(std::uint64_t begin) {
        const std::size_t outbox = endpoint_.shown_ % 2;
        Slot& own = slot(endpoint_.rank_);
        at(RankPhase::draining);
        if (!SWAPLAB_MUTANT("world.no_drain")) {
            await(0, static_cast<std::uint32_t>(outbox) + 1);
        }
        fill(own.outboxes[outbox], begin, block(outbox));
        own.stamps[outbox].store(++endpoint_.shown_);
        own.unread[outbox].store(peers_);
        at(RankPhase::shown);
        each_rank(peers_, [&](int peer) { wake(peer); });
        at(RankPhase::awake);
        if (begin == 0) {
            compare(arrived());
        }
    }

    void fill(Outbox& outbox, std::uint64_t begin, std::span<std::byte> staging) {
        at(RankPhase::staging);
        outbox.call = call_;
        outbox.stream_bytes = mine_.bytes.size();
        outbox.block_bytes = std::min<std::uint64_t>(staging.size(), mine_.bytes.size() - begin);
        outbox.for_each = !mine_.part_bytes.empty();
        std::uint64_t end = 0;
        for (std::size_t member = 0; member < mine_.part_bytes.size(); ++member) {
            end += mine_.part_bytes[member];
            outbox.part_ends[member] = end;
        }
        const auto part = mine_.bytes.subspan(begin, outbox.block_bytes);
        const std::size_t half = part.size() / 2;
        std::copy_n(part.begin(), half, staging.begin());
        at(RankPhase::half_staged);
        std::copy(part.begin() + static_cast<std::ptrdiff_t>(half), part.end(),
                  staging.begin() + static_cast<std::ptrdiff_t>(half));
        at(RankPhase::staged);
    }

    /// Wakes a rank if it sleeps and has now what it sleeps for.
    void wake(int rank) {
        Slot& other = slot(rank);
        const std::uint64_t givers = other.waits_for.load();
        const std::uint32_t drains = other.drains.load();
        if ((givers != 0 || drains != 0) && satisfied(rank, givers, drains)) {
            at(RankPhase::waking);
            other.bell.fetch_add(1);
            world_.hub().wake(rank, other);
        }
    }

    /// Until all of these have shown something to this rank, or all have read its outbox.
    void await(std::uint64_t givers, std::uint32_t drains) {
        const int rank = endpoint_.rank_;
        Wait wait{rank, 0, {}};
        if (drains == 0) {
            at(RankPhase::waiting);
        }
        while (!satisfied(rank, givers, drains)) {
            if (!world_.hub().pause(wait)) {
                return sleep(wait, givers, drains);
            }
        }
    }

    void sleep(Wait& wait, std::uint64_t givers, std::uint32_t drains) {
        Slot& own = slot(endpoint_.rank_);
        own.waits_for.store(givers);
        own.drains.store(drains);
        bool patient = true;
        while (true) {
            const std::uint32_t seen = own.bell.load();
            if (satisfied(endpoint_.rank_, givers, drains) || !may_come(givers, drains, patient)) {
                break;
            }
            at(RankPhase::sleeping);
            wait.counts = !world_.starting();
            patient = world_.hub().sleep(wait, own, seen);
        }
        own.waits_for.store(0);
        own.drains.store(0);
        if (!satisfied(endpoint_.rank_, givers, drains)) {
            world_.throw_if_broken(call_);
        }
    }

    /// false, and the world is broken: what this rank waits for will not come.
    [[nodiscard]] bool may_come(std::uint64_t givers, std::uint32_t drains, bool patient) {
        if (world_.broken()) {
            return false;
        }
        const std::uint64_t missing =
            drains == 0 ? givers : slot(endpoint_.rank_).unread[drains - 1].load();
        std::optional<std::pair<Breach, int>> breach;
        each_rank(missing, [&](int other) {
            const bool ended = board_.seat(other).end.load() != End::running;
            // What it showed before it ended counts.
            const bool came = drains == 0 ? shown_to(other, endpoint_.rank_).has_value()
                                          : !shown_to(endpoint_.rank_, other).has_value();
            if (!breach && !came && (ended || !patient)) {
                breach = {ended ? Breach::lost : Breach::late, other};
            }
        });
        if (breach) {
            world_.break_by(breach->first, breach->second, endpoint_.rank_);
        }
        return !breach;
    }

    [[nodiscard]] std::uint64_t arrived() {
        std::uint64_t ranks = 0;
        each_rank(peers_,
                  [&](int peer) { ranks |= shown_to(peer, endpoint_.rank_) ? bit_of(peer) : 0; });
        return ranks;
    }

    void compare(std::uint64_t ranks) {
        bool same = true;
        each_rank(ranks, [&](int peer) { same = same && same_call(shown_call(peer), call_); });
        if (same || SWAPLAB_MUTANT("world.agreement_unchecked")) {
            return;
        }
        std::vector<MemberCall> calls;
        each_rank(ranks | bit_of(endpoint_.rank_), [&](int rank) {
            calls.push_back({rank, rank == endpoint_.rank_ ? call_ : shown_call(rank)});
        });
        try {
            require_same_calls(calls);
        } catch (const CollectiveMismatch& error) {
            world_.break_by_mismatch(endpoint_.rank_, error);
        }
        world_.throw_if_broken(call_);
    }

    [[nodiscard]] const CallRecord& shown_call(int peer) {
        return slot(peer).outboxes[*shown_to(peer, endpoint_.rank_)].call;
    }

    /// Tells how much comes from each member; returns the length of the longest stream.
    [[nodiscard]] std::uint64_t expect() {
        own_index_ = index_of(endpoint_.rank_);
        parts_.resize(members_.size());
        for (std::size_t member = 0; member < members_.size(); ++member) {
            const int rank = members_[member];
            const Outbox& outbox = rank == endpoint_.rank_
                                       ? slot(rank).outboxes[(endpoint_.shown_ - 1) % 2]
                                       : slot(rank).outboxes[*shown_to(rank, endpoint_.rank_)];
            stream_bytes_[member] = outbox.stream_bytes;
            parts_[member] = part_of(outbox);
            theirs_.expect(member, parts_[member].end - parts_[member].begin);
        }
        return *std::max_element(stream_bytes_.begin(), stream_bytes_.end());
    }

    struct Part {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };

    /// This rank's part of what a member gives.
    [[nodiscard]] Part part_of(const Outbox& outbox) const {
        if (!outbox.for_each) {
            return {0, outbox.stream_bytes};
        }
        return {own_index_ == 0 ? 0 : outbox.part_ends[own_index_ - 1],
                outbox.part_ends[own_index_]};
    }

    void take(std::uint64_t begin) {
        for (std::size_t i = 0; i < members_.size(); ++i) {
            const bool backwards = i > 0 && SWAPLAB_MUTANT("world.reduce_backwards");
            const std::size_t member = backwards ? members_.size() - i : i;
            const int rank = members_[member];
            if (begin != 0 && begin >= stream_bytes_[member]) {
                continue;
            }
            if (rank == endpoint_.rank_) {
                hand_over(member, begin, (endpoint_.shown_ - 1) % 2);
                continue;
            }
            at(RankPhase::taking);
            const std::size_t outbox = *shown_to(rank, endpoint_.rank_);
            hand_over(member, begin, outbox);
            at(RankPhase::taken);
            acknowledge(rank, outbox);
            at(RankPhase::acknowledged);
        }
    }

    void hand_over(std::size_t member, std::uint64_t begin, std::size_t outbox) {
        const int rank = members_[member];
        const std::uint64_t end = begin + slot(rank).outboxes[outbox].block_bytes;
        const Part& part = parts_[member];
        const std::uint64_t from = std::max(begin, part.begin);
        const std::uint64_t to = std::min(end, part.end);
        if (from < to) {
            theirs_.take(
                member, from - part.begin,
                board_.block(endpoint_.channel_, rank, outbox).subspan(from - begin, to - from));
        }
    }

    void acknowledge(int giver, std::size_t outbox) {
        const std::uint64_t mine = bit_of(endpoint_.rank_);
        if (slot(giver).unread[outbox].fetch_and(~mine) == mine && slot(giver).drains.load() != 0) {
            wake(giver);
        }
    }

    Endpoint& endpoint_;
    WorldState& world_;
    Board& board_;
    const CallRecord& call_;
    std::span<const int> members_;
    const Outgoing& mine_;
    Incoming& theirs_;
    std::uint64_t peers_ = 0;
    std::size_t own_index_ = 0;
    std::vector<std::uint64_t> stream_bytes_;  ///< by member
    std::vector<Part> parts_;                  ///< by member
};

Endpoint::Endpoint(WorldState& world, int rank, int channel,
                   std::shared_ptr<std::atomic<int>> next_channel)
    : world_(world), rank_(rank), channel_(channel), next_channel_(std::move(next_channel)) {
    world_.open(channel_);
}

Endpoint::Endpoint(WorldState& world, int rank)
    : Endpoint(world, rank, 0, std::make_shared<std::atomic<int>>(1)) {}

std::unique_ptr<Communicator> Endpoint::open_channel(int channel) {
    if (channel >= channels) {
        throw ArgumentError(
            fmt::format("rank {} has no channel left: a world has {}, one of them for dup() each "
                        "time that it is called",
                        rank_, channels),
            {{"operation", "dup"}, {"expected", fmt::format("at most {}", channels - 1)}});
    }
    next_channel_->store(channel + 1);
    return std::make_unique<Endpoint>(world_, rank_, channel, next_channel_);
}

void Endpoint::exchange(const CollectiveCall& call, std::span<const int> members,
                        const Outgoing& mine, Incoming& theirs) {
    const CallRecord record = record_of(call);
    Seat& seat = world_.board().seat(rank_);
    seat.last_call.store(record);
    seat.calls.fetch_add(1, std::memory_order_relaxed);
    world_.at(rank_, RankPhase::called);
    world_.throw_if_broken(record);
    if (members.size() == 1) {
        theirs.expect(0, mine.bytes.size());
        if (!mine.bytes.empty()) {
            theirs.take(0, 0, mine.bytes);
        }
        return world_.at(rank_, RankPhase::done);
    }
    Transfer(*this, record, members, mine, theirs).run();
}

}  // namespace swaplab::sim
