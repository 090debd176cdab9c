#pragma once

/// Which keys of a saved group are more than the user's own.

#include <string_view>

namespace swaplab::optim {

/// True for the keys that AdamWOptions and ParamGroup::params stand for, and
/// decoupled_weight_decay, which AdamW forces to True. All others live in ParamGroup::extra.
[[nodiscard]] bool is_own_group_key(std::string_view key);

}  // namespace swaplab::optim
