#pragma once

/// Collectives between the ranks of a world.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "swaplab/sim/call_site.hpp"

namespace swaplab::sim {

using Bytes = std::vector<std::byte>;

enum class ReduceOp : std::uint8_t { sum, min, max };

/// What a collective call claims to be; equal on all ranks or CollectiveMismatch on all of them.
struct CollectiveCall {
    std::string_view operation;  ///< "barrier", "all_gather", ...
    std::string_view dtype;      ///< "byte" for untyped data
    /// elements per rank where all must agree; 0 where sizes may differ
    std::uint64_t count = 0;
    int root = -1;               ///< -1 where there is none
    CallSite site;
};

/// One rank's view of its world. All members of the world must call the same collectives in the
/// same order. Threads: one, the rank's. Data are copied; nothing is retained after the call.
///
/// Errors, on every rank: CollectiveMismatch before any data moved when calls differ; RankLost when
/// a member ended instead of taking part, naming it; DeadlineExceeded when nobody can go on. After
/// an error the communicator is broken: every further call throws the same error.
class Communicator {
  public:
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    virtual ~Communicator() = default;

    [[nodiscard]] virtual int rank() const noexcept = 0;
    [[nodiscard]] virtual int size() const noexcept = 0;

    void barrier(CallSite site = CallSite::here());
    /// Fills `data` on every rank with root's; equal sizes on all ranks.
    void broadcast(std::span<std::byte> data, int root, CallSite site = CallSite::here());
    /// Everybody's bytes in rank order; sizes may differ and may be 0.
    [[nodiscard]] std::vector<Bytes> all_gather(std::span<const std::byte> mine,
                                                CallSite site = CallSite::here());
    /// Everybody's bytes in rank order on `root`, empty elsewhere; sizes may differ.
    [[nodiscard]] std::vector<Bytes> gather(std::span<const std::byte> mine, int root,
                                            CallSite site = CallSite::here());
    /// Element-wise over ranks in ascending rank order, so that sums have the same bits everywhere.
    void all_reduce(std::span<double> values, ReduceOp op, CallSite site = CallSite::here());
    void all_reduce(std::span<std::int64_t> values, ReduceOp op, CallSite site = CallSite::here());
    /// Texts (serialised objects) of all ranks in rank order.
    [[nodiscard]] std::vector<std::string> all_gather_object(const std::string& mine,
                                                             CallSite site = CallSite::here());

  protected:
    Communicator() = default;

    /// The one primitive: checks `call` against everybody's, then returns everybody's `mine` in
    /// rank order. A barrier is an exchange of nothing.
    [[nodiscard]] virtual std::vector<Bytes> exchange(const CollectiveCall& call,
                                                      std::span<const std::byte> mine) = 0;
};

}  // namespace swaplab::sim
