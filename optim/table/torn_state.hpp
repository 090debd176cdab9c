#pragma once

/// The one refusal of a state that a failed load or step left half overwritten.

#include <string>

namespace swaplab::optim {

/// Throws TornState naming `operation` ("step", "save") and `rank` when `torn`.
void refuse_torn(bool torn, int rank, const std::string& operation);

}  // namespace swaplab::optim
