/// The parts that keep track of addresses and accesses, against plain models of them.

#include "simulated/address_index.hpp"
#include "simulated/address_space.hpp"
#include "simulated/allocations.hpp"
#include "simulated/shadow.hpp"

#include "swaplab/sim/random.hpp"

#include <array>
#include <map>

namespace swaplab::sim {
namespace {

TEST(AddressIndex, AnswersLikeAnOrderedMap) {
    for (const std::uint64_t range :
         {std::uint64_t{8}, std::uint64_t{3000}, std::uint64_t{1} << 30U}) {
        AddressIndex index(256);
        std::map<std::uint64_t, std::uint32_t> model;
        Rng rng(range);
        for (std::uint32_t step = 0; step < 3000; ++step) {
            const std::uint64_t address = 256 * rng.below(range);
            if (rng.below(3) == 0) {
                const std::uint64_t end = address + 256 * (1 + rng.below(20));
                const auto first = model.lower_bound(address);
                const bool any = first != model.end() && first->first < end;
                ASSERT_EQ(index.take_first(address, end),
                          any ? std::optional(first->second) : std::nullopt);
                if (any) {
                    model.erase(first);
                }
            } else {
                index.insert(address, step);
                model.insert_or_assign(address, step);
            }
            const std::uint64_t at = rng.below(256 * range);
            const auto after = model.upper_bound(at);
            ASSERT_EQ(index.at_or_below(at), after == model.begin()
                                                 ? std::nullopt
                                                 : std::optional(std::prev(after)->second));
        }
    }
}

/// Two lanes allocate and free; the host waits now and then.
class AddressSpaceModel {
  public:
    explicit AddressSpaceModel(std::uint64_t seed) : rng_(seed) {}

    void step() {
        const auto lane = static_cast<LaneId>(rng_.below(2));
        if (rng_.below(40) == 0) {
            host_.join(clocks_[lane]);
        }
        clocks_[lane].join(host_);
        clocks_[lane].advance({lane, ++counts_[lane]});
        if (rng_.below(2) == 0 && !live_.empty()) {
            free(lane);
        } else {
            allocate(lane);
        }
    }

  private:
    static constexpr std::uint64_t arena_bytes = 256 * 400;

    void free(LaneId lane) {
        auto gone = live_.begin();
        std::advance(gone, static_cast<std::ptrdiff_t>(rng_.below(live_.size())));
        const Epoch at{lane, counts_[lane]};
        for (std::uint64_t granule = 0; granule < gone->second; granule += 256) {
            freed_at_[gone->first + granule] = at;
        }
        space_.give_back(gone->first, gone->second, at);
        live_.erase(gone);
    }

    void allocate(LaneId lane) {
        const std::uint64_t bytes = 256 * (1 + rng_.below(30));
        const std::uint64_t largest = space_.largest(clocks_[lane]);
        const auto offset = space_.take(bytes, clocks_[lane], host_);
        ASSERT_EQ(offset.has_value(), bytes <= largest);
        ASSERT_EQ(offset.has_value(), offset || fits(bytes, clocks_[lane])) << "a hole was missed";
        if (!offset) {
            return;
        }
        ASSERT_LE(*offset + bytes, arena_bytes);
        for (std::uint64_t at = *offset; at < *offset + bytes; at += 256) {
            ASSERT_TRUE(free_for(at, clocks_[lane])) << at;
        }
        live_[*offset] = bytes;
    }

    bool free_for(std::uint64_t at, const VectorClock& clock) const {
        auto after = live_.upper_bound(at);
        const bool used = after != live_.begin() && (--after)->first + after->second > at;
        const auto freed = freed_at_.find(at);
        return !used && (freed == freed_at_.end() || clock.covers(freed->second));
    }

    bool fits(std::uint64_t bytes, const VectorClock& clock) const {
        std::uint64_t run = 0;
        for (std::uint64_t at = 0; at < arena_bytes; at += 256) {
            run = free_for(at, clock) ? run + 256 : 0;
            if (run >= bytes) {
                return true;
            }
        }
        return false;
    }

    Rng rng_;
    AddressSpace space_{arena_bytes};
    VectorClock host_;
    std::array<VectorClock, 2> clocks_;
    std::array<std::uint64_t, 2> counts_{};
    std::map<std::uint64_t, std::uint64_t> live_;
    std::map<std::uint64_t, Epoch> freed_at_;
};

TEST(AddressSpace, GivesEveryHoleToThoseOrderedAfterItsFreesAndToNobodyElse) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        AddressSpaceModel model(seed);
        for (int step = 0; step < 600; ++step) {
            ASSERT_NO_FATAL_FAILURE(model.step()) << "seed " << seed << " step " << step;
        }
    }
}

/// Accesses to 40 bytes by 3 lanes that sometimes follow each other, checked byte by byte.
class ShadowModel {
  public:
    explicit ShadowModel(std::uint64_t seed) : rng_(seed) { shadow_.begin(size, Touch{}, false); }

    void step() {
        const auto lane = static_cast<LaneId>(rng_.below(3));
        if (rng_.below(3) == 0) {
            clocks_[lane].join(clocks_[rng_.below(3)]);
        }
        const Touch touch{{lane, ++counts_[lane]}, ++operation_};
        clocks_[lane].advance(touch.epoch);
        const std::uint64_t begin = rng_.below(size);
        const Span span{begin, begin + 1 + rng_.below(size - begin)};
        rng_.below(2) == 0 ? read(span, touch) : write(span, touch);
    }
    [[nodiscard]] std::size_t interval_count() const { return shadow_.interval_count(); }

  private:
    static constexpr std::uint64_t size = 40;
    struct Byte {
        Touch write;
        std::vector<Touch> reads;
        bool written = false;
    };

    void read(Span span, Touch touch) {
        const VectorClock& clock = clocks_[touch.epoch.lane];
        bool conflict = false;
        bool unwritten = false;
        for (std::uint64_t at = span.begin; at < span.end; ++at) {
            conflict = conflict || !clock.covers(bytes_[at].write.epoch);
            unwritten = unwritten || !bytes_[at].written;
            bytes_[at].reads.push_back(touch);
        }
        const Shadow::Verdict verdict = shadow_.read(span, touch, clock);
        ASSERT_EQ(verdict.conflict.has_value(), conflict);
        ASSERT_EQ(verdict.unwritten.has_value(), unwritten);
    }

    void write(Span span, Touch touch) {
        const VectorClock& clock = clocks_[touch.epoch.lane];
        bool conflict = false;
        for (std::uint64_t at = span.begin; at < span.end; ++at) {
            conflict = conflict || !clock.covers(bytes_[at].write.epoch);
            for (const Touch& earlier : bytes_[at].reads) {
                conflict = conflict || !clock.covers(earlier.epoch);
            }
            bytes_[at] = {touch, {}, true};
        }
        ASSERT_EQ(shadow_.write(span, touch, clock).conflict.has_value(), conflict);
    }

    Rng rng_;
    Shadow shadow_;
    std::array<VectorClock, 3> clocks_;
    std::array<std::uint64_t, 3> counts_{};
    std::array<Byte, size> bytes_{};
    std::uint64_t operation_ = 0;
};

TEST(Shadow, FindsWhatAByteByByteModelFinds) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        ShadowModel model(seed);
        for (int step = 0; step < 200; ++step) {
            ASSERT_NO_FATAL_FAILURE(model.step()) << "seed " << seed << " step " << step;
        }
        EXPECT_LE(model.interval_count(), 40U);
    }
}

TEST(Shadow, TakesAtMost256BytesAnInterval) {
    Allocations allocations(256);
    VectorClock clock;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        Allocation& fresh = allocations.add(i * 65536, 65536, 65536);
        fresh.shadow.begin(65536, Touch{}, false);
        for (std::uint64_t part = 0; part < i; ++part) {
            clock.advance({0, part + 1});
            fresh.shadow.write({part * 64, part * 64 + 64}, {{0, part + 1}, part}, clock);
        }
    }
    const Allocations::ShadowSize size = allocations.shadow_size();
    EXPECT_LE(size.bytes, 256 * size.intervals);
}

}  // namespace
}  // namespace swaplab::sim
