#pragma once

/// Paths into a scenario file: used by [matrix], with, where, restart, --set.

#include "scenario/language/node.hpp"

#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// Writes `patch.value` where its path leads: world.size, param.NAME.shape, group.N.lr,
/// step.LABEL.KEY. Reports no-such-path and returns false when it leads nowhere.
bool apply_patch(Node& document, const NodePath& patch, Diagnostics& diagnostics);

/// Labels of the steps of a document, in order, defaults filled in. Steps that are no table or have
/// no verb get "".
[[nodiscard]] std::vector<std::string> step_labels(const Node& document);

/// The verb of a step table, or empty.
[[nodiscard]] std::string verb_of(const Node& step);

/// "*" any run of characters, "?" one.
[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace swaplab::harness::scenario
