#pragma once

/// Plans and their results on the way between ranks.

#include "checkpoint/planner.hpp"

#include <string>
#include <vector>

namespace swaplab::harness {

[[nodiscard]] std::string pack_plan(const LocalPlan& plan);
[[nodiscard]] LocalPlan unpack_plan(const std::string& bytes);

[[nodiscard]] std::string pack_items(const std::vector<StoredItem>& items);
[[nodiscard]] std::vector<StoredItem> unpack_items(const std::string& bytes);

}  // namespace swaplab::harness
