#pragma once

/// The one refusal of what a failed load or step left half overwritten.

#include <string>

namespace swaplab::optim {

/// What is half overwritten.
struct TornMarks {
    bool state = false;  ///< moments, steps
    bool parameters = false;

    [[nodiscard]] bool any() const noexcept { return state || parameters; }
};

/// Throws TornState naming `operation` ("step", "state_dict") and `rank` when anything is torn.
void refuse_torn(const TornMarks& torn, int rank, const std::string& operation);

}  // namespace swaplab::optim
