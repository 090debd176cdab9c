#pragma once

/// Handles as accelerators give them out: small numbers, used again after destruction.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace swaplab::sim {

/// Owns values of type T by handle. Pointers are valid until the next add().
template <class T>
class HandleTable {
  public:
    std::uint64_t add(T value) {
        const auto place = std::find_if(values_.begin(), values_.end(),
                                        [](const auto& slot) { return !slot.has_value(); });
        if (place != values_.end()) {
            place->emplace(std::move(value));
            return static_cast<std::uint64_t>(place - values_.begin());
        }
        values_.emplace_back(std::move(value));
        return values_.size() - 1;
    }
    [[nodiscard]] T* find(std::uint64_t handle) noexcept {
        return handle < values_.size() && values_[handle] ? &*values_[handle] : nullptr;
    }
    void remove(std::uint64_t handle) noexcept { values_[handle].reset(); }
    template <class Visit>
    void for_each(Visit visit) {
        for (auto& value : values_) {
            if (value) {
                visit(*value);
            }
        }
    }

  private:
    std::vector<std::optional<T>> values_;
};

}  // namespace swaplab::sim
