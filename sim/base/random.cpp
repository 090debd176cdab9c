#include "swaplab/sim/random.hpp"

#include "swaplab/sim/assert.hpp"

namespace swaplab::sim {
namespace {

constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15ULL;

}  // namespace

std::uint64_t hash_text(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    }
    return split_mix(hash);
}

std::uint64_t Rng::next() noexcept {
    state_ += golden_gamma;
    return split_mix(state_);
}

std::uint64_t Rng::below(std::uint64_t bound) noexcept {
    SWAPLAB_ASSERT(bound > 0, "Rng::below needs a bound of at least 1");
    const std::uint64_t reject_below = (0 - bound) % bound;
    std::uint64_t draw = next();
    while (draw < reject_below) {
        draw = next();
    }
    return draw % bound;
}

}  // namespace swaplab::sim
