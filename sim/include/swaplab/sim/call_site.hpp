#pragma once

/// Where in the source a call was made: carried by allocations, operations and collectives so that
/// findings and errors can name it.

#include <string>

namespace swaplab::sim {

/// A place in the source. Use as a defaulted last parameter: `CallSite site = CallSite::here()`.
/// The pointer is to static storage and never freed. (`std::source_location` is not used because
/// clang 14 cannot parse libstdc++ 12's.)
struct CallSite {
    const char* file = "";
    int line = 0;

    static constexpr CallSite here(const char* call_file = __builtin_FILE(),
                                   int call_line = __builtin_LINE()) noexcept {
        return {call_file, call_line};
    }
};

/// "trainer.cpp:41": the file without its folder, so that texts are equal on every machine.
[[nodiscard]] std::string format_site(CallSite site);

}  // namespace swaplab::sim
