#pragma once

/// The memory that the ranks of one world share: what each shows to the others.
///
/// Everything lies in one mapping that is made before the ranks run and never changes its
/// structure; all zeros is its initial state. It holds no pointers, locks or conditions: a rank may
/// be killed at any instruction without leaving anything that others could wait for in vain, as
/// long as they wait with a bound (world/hub.hpp).
///
/// An Outbox belongs to one rank, which alone writes it while `unread` is 0. Storing the readers'
/// bits in `unread` shows it to them; each takes its bit away when it has read.

#include "swaplab/sim/call_record.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace swaplab::sim {

constexpr int ranks_max = 64;  // ranks are bits of one word
constexpr int channels = 8;

/// A value that others may read while it is being written: they may see a mixture, no more.
template <class T>
class Glimpse {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    void store(const T& value) noexcept {
        std::array<std::uint64_t, (sizeof(T) + 7) / 8> words{};
        std::memcpy(words.data(), &value, sizeof(T));
        for (std::size_t i = 0; i < words.size(); ++i) {
            words_[i].store(words[i], std::memory_order_relaxed);
        }
    }
    [[nodiscard]] T load() const noexcept {
        std::array<std::uint64_t, (sizeof(T) + 7) / 8> words{};
        for (std::size_t i = 0; i < words.size(); ++i) {
            words[i] = words_[i].load(std::memory_order_relaxed);
        }
        T value;
        std::memcpy(static_cast<void*>(&value), words.data(), sizeof(T));
        return value;
    }

  private:
    std::array<std::atomic<std::uint64_t>, (sizeof(T) + 7) / 8> words_;
};

/// Text of one writer, published by a later release store. Cut to fit.
template <std::size_t N>
struct BoundedText {
    std::uint64_t size = 0;
    char text[N - sizeof(std::uint64_t)];

    void store(std::string_view value) noexcept {
        size = std::min(value.size(), sizeof(text));
        std::memcpy(text, value.data(), size);
    }
    [[nodiscard]] std::string_view view() const noexcept { return {text, size}; }
};

/// One block on its way to others.
struct Outbox {
    CallRecord call;
    std::uint64_t stream_bytes = 0;  ///< of all blocks of this exchange together
    std::uint64_t block_bytes = 0;
    bool for_each = false;  ///< each member gets a part of its own, up to part_ends
    std::array<std::uint64_t, ranks_max> part_ends;
};

/// What one rank shows on one channel.
struct alignas(64) Slot {
    std::array<std::atomic<std::uint64_t>, 2> unread;  ///< ranks that have yet to read outbox i
    std::array<std::atomic<std::uint64_t>, 2> stamps;  ///< which of the two was filled first
    alignas(64) std::atomic<std::uint64_t> waits_for;  ///< ranks whose blocks this one sleeps for
    std::atomic<std::uint32_t> drains;                 ///< 1 + outbox that it sleeps for, or 0
    std::atomic<std::uint32_t> bell;                   ///< changes whenever it is woken
    alignas(64) std::array<Outbox, 2> outboxes;
};

/// How a rank ended. The order is that of what others see.
enum class End : std::uint32_t { running, returned, threw, trapped, killed, exited, stopped };

/// What one rank tells about itself.
struct alignas(64) Seat {
    std::atomic<End> end;
    std::atomic<bool> present;  ///< its program has begun
    std::atomic<std::uint32_t> phase;
    std::atomic<std::uint32_t> calls;  ///< collectives begun so far
    Glimpse<CallRecord> last_call;
    BoundedText<2048> reason;        ///< of the end; complete when `end` is set
    BoundedText<30 * 1024> verdict;  ///< why the world broke; complete when Header names it
    std::atomic<std::uint64_t> report_bytes;  ///< 0 until the rank has written its report
};

/// Why no rank can go on, decided once.
enum class Breach : std::uint32_t { none, mismatch, lost, late };

/// What a program that joins by exec must know of the world: the launcher's options.
struct Charter {
    static constexpr std::uint64_t expected_mark = 0x31646c726f777773;  // "swworld1"

    std::uint64_t mark = expected_mark;
    std::array<std::uint64_t, 4> layout{};  ///< of the program that made it
    std::int64_t ranks = 0;
    std::int64_t deadline_ms = 0;
    std::int64_t start_max_ms = 0;
    std::uint64_t staging_bytes = 0;
    std::uint64_t value_bytes = 0;
};

struct alignas(64) Header {
    Charter charter;                    ///< first in the mapping; only where programs join by exec
    std::atomic<std::uint64_t> breach;  ///< kind, rank concerned and rank that found it
    std::atomic<std::uint32_t> channels_used;
};

struct BoardSize {
    int ranks = 1;
    std::uint64_t staging_bytes = 0;  ///< of all ranks and channels together
    std::uint64_t report_bytes = 0;   ///< of each rank
};

/// Where things lie in the mapping.
struct BoardLayout {
    explicit BoardLayout(const BoardSize& size) noexcept;

    std::uint64_t seats = 0;
    std::uint64_t slots = 0;
    std::uint64_t reports = 0;
    std::uint64_t blocks = 0;
    std::uint64_t block_bytes = 0;
    std::uint64_t bytes = 0;  ///< of everything
};

/// Finds things in the shared mapping, and owns it. Copies of a Board in other processes made by
/// fork see the same memory; so do other programs' boards over the same file. Throws StorageError
/// when it cannot be mapped.
class Board {
  public:
    static constexpr int no_file = -1;

    /// `file`: a descriptor of BoardLayout::bytes to map, or memory that has no name.
    explicit Board(const BoardSize& size, int file = no_file);
    ~Board();
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;

    [[nodiscard]] int ranks() const noexcept { return size_.ranks; }
    [[nodiscard]] Header& header() const noexcept;
    [[nodiscard]] Seat& seat(int rank) const noexcept;
    [[nodiscard]] Slot& slot(int channel, int rank) const noexcept;
    /// Where the bytes of a rank's outbox lie; all of equal size, a multiple of 64.
    [[nodiscard]] std::span<std::byte> block(int channel, int rank, std::size_t outbox) const;
    [[nodiscard]] std::span<std::byte> report(int rank) const noexcept;

  private:
    struct Mapping;

    [[nodiscard]] std::byte* at(std::uint64_t offset) const noexcept;

    BoardSize size_;
    BoardLayout layout_;
    std::unique_ptr<Mapping> mapping_;
};

}  // namespace swaplab::sim
