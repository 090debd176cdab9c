#include "simulated/address_index.hpp"

#include <iterator>

namespace swaplab::sim {

int AddressIndex::Chunk::last_to(std::uint64_t key) const noexcept {
    auto word = static_cast<int>(key >> word_bits);
    const std::uint64_t mask = ~std::uint64_t{0} >> (63U - (key & 63U));
    std::uint64_t bits = used[static_cast<std::size_t>(word)] & mask;
    while (bits == 0 && word > 0) {
        bits = used[static_cast<std::size_t>(--word)];
    }
    return bits == 0 ? -1 : word * 64 + 63 - std::countl_zero(bits);
}

std::uint64_t AddressIndex::Chunk::first_from(std::uint64_t key) const noexcept {
    std::size_t word = key >> word_bits;
    std::uint64_t bits = used[word] & (~std::uint64_t{0} << (key & 63U));
    while (bits == 0 && word + 1 < used.size()) {
        bits = used[++word];
    }
    return bits == 0 ? chunk_keys : word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
}

AddressIndex::Chunk* AddressIndex::chunk_of(std::uint64_t granule) noexcept {
    const std::uint64_t key = granule >> chunk_bits;
    if (recent_ == nullptr || recent_key_ != key) {
        const auto found = chunks_.find(key);
        if (found == chunks_.end()) {
            return nullptr;
        }
        recent_key_ = key;
        recent_ = &found->second;
    }
    return recent_;
}

void AddressIndex::insert(std::uint64_t address, std::uint32_t value) {
    const std::uint64_t granule = address >> shift_;
    Chunk* chunk = chunk_of(granule);
    if (chunk == nullptr) {
        chunk = &chunks_[granule >> chunk_bits];
    }
    const std::uint64_t key = granule & (chunk_keys - 1);
    chunk->used[key >> word_bits] |= std::uint64_t{1} << (key & 63U);
    chunk->values[key] = value;
}

std::optional<std::uint32_t> AddressIndex::at_or_below(std::uint64_t address) const noexcept {
    const std::uint64_t granule = address >> shift_;
    const std::uint64_t key = granule >> chunk_bits;
    if (recent_ != nullptr && recent_key_ == key) {
        if (const int found = recent_->last_to(granule & (chunk_keys - 1)); found >= 0) {
            return recent_->values[static_cast<std::size_t>(found)];
        }
    }
    auto chunk = chunks_.upper_bound(key);
    while (chunk != chunks_.begin()) {
        --chunk;
        const std::uint64_t from =
            chunk->first == key ? granule & (chunk_keys - 1) : chunk_keys - 1;
        if (const int found = chunk->second.last_to(from); found >= 0) {
            return chunk->second.values[static_cast<std::size_t>(found)];
        }
    }
    return std::nullopt;
}

std::optional<std::uint32_t> AddressIndex::take_first(std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t first = begin >> shift_;
    const std::uint64_t last = (end - 1) >> shift_;
    for (auto chunk = chunks_.lower_bound(first >> chunk_bits);
         chunk != chunks_.end() && chunk->first <= last >> chunk_bits; ++chunk) {
        const std::uint64_t base = chunk->first << chunk_bits;
        const std::uint64_t key = chunk->second.first_from(first > base ? first - base : 0);
        if (key == chunk_keys) {
            continue;
        }
        if (base + key > last) {
            return std::nullopt;
        }
        chunk->second.used[key >> word_bits] &= ~(std::uint64_t{1} << (key & 63U));
        return chunk->second.values[key];
    }
    return std::nullopt;
}

}  // namespace swaplab::sim
