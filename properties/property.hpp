#pragma once

/// Running properties with what RapidCheck leaves to its users: an own seed for each property, a
/// least number of cases, a bound on shrinking, and failures that throw so that shrinking works.

#include "story.hpp"

#include <functional>
#include <stdexcept>
#include <string>

namespace swaplab::properties {

/// Thrown by PROP_TRUE. EXPECT and ASSERT would not stop a case and so could not shrink it.
class PropertyFailed : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

using Property = std::function<void(const Story&)>;

struct Verdict {
    bool held = false;
    std::string text;  ///< why not, with the smallest story found and how to run it again
};

/// Runs `property` on `cases` stories. The seed is that of RC_PARAMS (1 without) mixed with `name`.
/// Giving up, or fewer cases than asked for, is not held.
[[nodiscard]] Verdict check(const std::string& name, int cases, const Property& property);

/// Fails the running test unless `property` holds on 500 stories (or RC_PARAMS max_success).
void must_hold(const Property& property);
/// Fails the running test unless one of 500 stories makes a PROP_TRUE fail with a message that
/// contains `as`. Failures of other kinds do not count: they say nothing about this property.
void must_be_caught(const Property& property, const std::string& as);

}  // namespace swaplab::properties

/// Ends the case as failed with `message` (anything convertible to std::string).
#define PROP_TRUE(condition, message)                                                            \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            throw ::swaplab::properties::PropertyFailed(#condition ": " + std::string(message)); \
        }                                                                                        \
    } while (false)
