#pragma once

/// Assertions for programmer errors; on in every build type.

#include <string>

#include "swaplab/sim/call_site.hpp"

namespace swaplab::sim {

/// Prints `condition`, `message` and the place to stderr and aborts.
[[noreturn]] void assertion_failed(const char* condition, const std::string& message,
                                   CallSite site) noexcept;

}  // namespace swaplab::sim

/// Aborts with file, line and `message` (anything convertible to std::string, built only on
/// failure) when `condition` is false. For errors of the programmer only: bad input and failing
/// devices are values or exceptions (see error.hpp).
#define SWAPLAB_ASSERT(condition, message)                                                        \
    do {                                                                                          \
        if (!(condition)) [[unlikely]] {                                                          \
            ::swaplab::sim::assertion_failed(#condition, message,                                 \
                                             ::swaplab::sim::CallSite::here());                   \
        }                                                                                         \
    } while (false)
