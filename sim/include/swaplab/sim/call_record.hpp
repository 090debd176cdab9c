#pragma once

/// Collective calls as bytes of one size, for whoever implements Communicator::exchange.

#include "swaplab/sim/communicator.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace swaplab::sim {

/// A call on its way to the other members. Texts end with a zero and are cut to fit. Ranks of one
/// program on one kind of machine read each other's bytes.
struct CallRecord {
    std::uint64_t sequence = 0;
    std::uint64_t count = 0;
    std::int32_t root = -1;
    std::int32_t line = 0;
    char group[64] = {};
    char purpose[96] = {};
    char operation[32] = {};
    char dtype[16] = {};
    char file[48] = {};  ///< without its folder
};

[[nodiscard]] CallRecord record_of(const CollectiveCall& call);

/// All but the call site.
[[nodiscard]] bool same_call(const CallRecord& a, const CallRecord& b) noexcept;

/// "all_gather 7 of 12 float32 from root 0 (engine.cpp:41)"
[[nodiscard]] std::string describe(const CallRecord& record);

/// "engine.cpp:41"
[[nodiscard]] std::string site_of(const CallRecord& record);

/// One member's call. Rank: of the world.
struct MemberCall {
    int rank = 0;
    CallRecord call;
};

/// Throws CollectiveMismatch, which names every rank's call, unless all are the same.
void require_same_calls(std::span<const MemberCall> calls);

}  // namespace swaplab::sim
