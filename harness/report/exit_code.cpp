#include "swaplab/harness/exit_code.hpp"

#include <array>

namespace swaplab::harness {

ExitCode worse(ExitCode a, ExitCode b) noexcept {
    constexpr std::array order{ExitCode::usage,  ExitCode::environment, ExitCode::hang,
                               ExitCode::failed, ExitCode::nothing,     ExitCode::ok};
    for (const ExitCode code : order) {
        if (a == code || b == code) {
            return code;
        }
    }
    return ExitCode::ok;
}

std::string exit_code_help() {
    return R"(code  run, lint                 inspect              diff       replay       anywhere
0     all passed                nothing found        equal      no finding
1     a check failed            finding              different  finding      checkpoint refused
2     bad scenario                                              no trace     bad usage
3     nothing ran, all skipped  cannot tell
4     missing, unreadable       missing, unreadable  the same   the same     no space, no memory
5     a rank hung
A replay that is not the recorded run: 1.
Several at once: 2 before anything runs; then the first of 4, 5, 1, 3, 0 that applies.
)";
}

}  // namespace swaplab::harness
