#include <cstdio>

#include "swaplab/harness/exit_code.hpp"
#include "swaplab/optim/sharding.hpp"
#include "swaplab/sim/digest.hpp"

// Uses every installed library and what they link, from outside the source tree.
int main() {
    using namespace swaplab;
    const bool hashes = sim::sha256_hex({}) ==
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const bool shapes = optim::to_string({12, 2}) == "[12,2]";
    const bool codes = harness::worse(harness::ExitCode::ok, harness::ExitCode::hang) ==
                       harness::ExitCode::hang;
    std::printf("hashes %d, shapes %d, codes %d\n", hashes, shapes, codes);
    return hashes && shapes && codes ? 0 : 1;
}
