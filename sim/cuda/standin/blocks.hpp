#pragma once

/// Which addresses the stand-in has given out, or been told of.

#include <cstdint>
#include <map>

namespace swaplab::sim {

class Gpu;
class Pool;

struct Block {
    enum class Kind : std::uint8_t { device, pooled, pinned, registered };
    Kind kind{};
    std::uint64_t bytes = 0;
    unsigned flags = 0;  ///< of host memory, as asked for
    Gpu* gpu = nullptr;
    const void* registered = nullptr;  ///< where the caller's range begins, within its pages
    Pool* pool = nullptr;              ///< of pooled memory

    [[nodiscard]] bool is_host() const noexcept {
        return kind == Kind::pinned || kind == Kind::registered;
    }
};

class Blocks {
  public:
    void add(const void* begin, const Block& block) { blocks_[address(begin)] = block; }
    void remove(const void* begin) { blocks_.erase(address(begin)); }
    /// Those of one device.
    void remove_all(const Gpu& gpu) {
        std::erase_if(blocks_, [&](const auto& entry) { return entry.second.gpu == &gpu; });
    }
    void clear() noexcept { blocks_.clear(); }

    /// The block that holds `pointer`; nullptr: none.
    [[nodiscard]] const Block* find(const void* pointer) const {
        auto after = blocks_.upper_bound(address(pointer));
        if (after == blocks_.begin()) {
            return nullptr;
        }
        --after;
        return address(pointer) - after->first < after->second.bytes ? &after->second : nullptr;
    }
    /// Whether a block has bytes in [begin, begin + bytes), bytes > 0.
    [[nodiscard]] bool overlaps(const void* begin, std::uint64_t bytes) const {
        const auto after = blocks_.lower_bound(address(begin));
        return find(begin) != nullptr ||
               (after != blocks_.end() && after->first - address(begin) < bytes);
    }
    /// The block that begins at `pointer`; nullptr: none.
    [[nodiscard]] const Block* find_begin(const void* pointer) const {
        const auto found = blocks_.find(address(pointer));
        return found == blocks_.end() ? nullptr : &found->second;
    }

  private:
    static std::uintptr_t address(const void* pointer) noexcept {
        return reinterpret_cast<std::uintptr_t>(pointer);
    }
    std::map<std::uintptr_t, Block> blocks_;
};

}  // namespace swaplab::sim
