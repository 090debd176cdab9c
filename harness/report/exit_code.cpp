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
    return "code  run, lint                     inspect              diff       anywhere\n"
           "0     all passed                    nothing found        equal\n"
           "1     a check failed                finding              different  checkpoint refused\n"
           "2     bad scenario                                                  bad usage\n"
           "3     nothing ran, all skipped      cannot tell\n"
           "4                                   missing, unreadable  the same   no space left\n"
           "5     a rank hung\n"
           "Several at once: 2 before anything runs; then the first of 4, 5, 1, 3, 0 that applies.\n";
}

}  // namespace swaplab::harness
