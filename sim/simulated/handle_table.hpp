#pragma once

/// Handles as accelerators give them out: small numbers, used again after destruction.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace swaplab::sim {

/// Owns values of type T by handle. The handle that became free last is given out first. Pointers
/// are valid until the next add().
template <class T>
class HandleTable {
  public:
    std::uint64_t add(T value) {
        if (unused_.empty()) {
            values_.emplace_back(std::move(value));
            return values_.size() - 1;
        }
        const std::uint64_t handle = unused_.back();
        unused_.pop_back();
        values_[handle].emplace(std::move(value));
        return handle;
    }
    [[nodiscard]] T* find(std::uint64_t handle) noexcept {
        return handle < values_.size() && values_[handle] ? &*values_[handle] : nullptr;
    }
    void remove(std::uint64_t handle) {
        values_[handle].reset();
        unused_.push_back(handle);
    }
    template <class Predicate>
    void remove_if(Predicate predicate) {
        for (std::uint64_t handle = 0; handle < values_.size(); ++handle) {
            if (values_[handle] && predicate(*values_[handle])) {
                remove(handle);
            }
        }
    }
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
    std::vector<std::uint64_t> unused_;
};

}  // namespace swaplab::sim
