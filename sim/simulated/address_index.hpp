#pragma once

/// An ordered map from addresses to small numbers for many keys that lie close together.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace swaplab::sim {

/// Keys are multiples of `granule_bytes`. A chunk of keys is a bitmap and an array, so that most
/// look-ups touch two cache lines.
class AddressIndex {
  public:
    explicit AddressIndex(std::uint64_t granule_bytes) noexcept
        : shift_(static_cast<unsigned>(std::countr_zero(granule_bytes))) {}

    void insert(std::uint64_t address, std::uint32_t value);
    /// The value of the last key at or below `address`.
    [[nodiscard]] std::optional<std::uint32_t> at_or_below(std::uint64_t address) const noexcept;
    /// Removes and returns the value of the first key in [begin, end).
    std::optional<std::uint32_t> take_first(std::uint64_t begin, std::uint64_t end);

  private:
    static constexpr unsigned word_bits = 6;
    static constexpr unsigned chunk_bits = 9;
    static constexpr std::uint64_t chunk_keys = std::uint64_t{1} << chunk_bits;

    struct Chunk {
        std::array<std::uint64_t, (chunk_keys >> word_bits)> used{};
        std::array<std::uint32_t, chunk_keys> values{};

        /// The highest key in use that is not above `key`; -1 when there is none.
        [[nodiscard]] int last_to(std::uint64_t key) const noexcept;
        /// The lowest key in use from `key` on; chunk_keys when there is none.
        [[nodiscard]] std::uint64_t first_from(std::uint64_t key) const noexcept;
    };

    [[nodiscard]] Chunk* chunk_of(std::uint64_t granule) noexcept;

    unsigned shift_;
    std::map<std::uint64_t, Chunk> chunks_;
    std::uint64_t recent_key_ = 0;  ///< of `recent_`: neighbours are asked for one after another
    Chunk* recent_ = nullptr;
};

}  // namespace swaplab::sim
