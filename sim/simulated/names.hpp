#pragma once

/// Texts by small number, so that operations need not carry strings.

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace swaplab::sim {

using NameId = std::uint32_t;

/// Every text that was interned, once. Number 0 is the empty text. References stay valid.
class Names {
  public:
    Names() { static_cast<void>(intern("")); }

    [[nodiscard]] NameId intern(std::string_view text) {
        if (const auto found = ids_.find(text); found != ids_.end()) {
            return found->second;
        }
        const std::string& kept = texts_.emplace_back(text);
        return ids_.emplace(kept, static_cast<NameId>(texts_.size() - 1)).first->second;
    }
    [[nodiscard]] const std::string& operator[](NameId id) const noexcept { return texts_[id]; }

  private:
    std::deque<std::string> texts_;
    std::unordered_map<std::string_view, NameId> ids_;  ///< views of texts_; only looked up
};

}  // namespace swaplab::sim
