#pragma once

/// Collectives between the ranks of a world.

#include "swaplab/sim/call_site.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::sim {

using Bytes = std::vector<std::byte>;

enum class ReduceOp : std::uint8_t { sum, min, max };

/// What a collective call claims to be; equal on all members or CollectiveMismatch on all of them.
struct CollectiveCall {
    std::string_view operation;  ///< "barrier", "all_gather", ...
    std::string_view dtype;      ///< "byte" for untyped data
    /// elements per rank where all must agree; 0 where sizes may differ
    std::uint64_t count = 0;
    int root = -1;               ///< -1 where there is none
    CallSite site;               ///< may differ
    std::string_view purpose{};  ///< the operation it belongs to, for people; may be empty
    std::string_view group = "world";
    std::uint64_t sequence = 0;  ///< number of this call in its group, from 1
};

/// What one member gives to an exchange.
struct Outgoing {
    std::span<const std::byte> bytes;
    /// Sizes of the parts for each member, which lie one after the other in `bytes`; empty: every
    /// member gets all of it.
    std::span<const std::uint64_t> part_bytes;
};

/// Where what the members give goes to.
class Incoming {
  public:
    virtual ~Incoming() = default;
    /// Called for each member in order once all calls were found equal, before the first take().
    virtual void expect(std::size_t /*member*/, std::uint64_t /*bytes*/) {}
    /// Takes bytes [offset, offset + block) of what `member` gives this rank, at least one. Blocks
    /// begin and end at multiples of 64 of the giver's bytes, or where its bytes for this rank do;
    /// those at one offset come in ascending member order.
    virtual void take(std::size_t member, std::uint64_t offset,
                      std::span<const std::byte> block) = 0;
};

/// One rank's view of its world, or of a group of its ranks. All members must call the same
/// collectives in the same order. Threads: one, the rank's. Data are copied; nothing is retained
/// after the call.
///
/// Errors, on every member: CollectiveMismatch before any data moved when calls differ; RankLost
/// when a member ended instead of taking part, naming it and where it was; DeadlineExceeded when
/// one does not come. After an error the whole world is broken: every further call throws, and what
/// a collective had filled so far is unspecified.
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
    /// Fills `all`, size() times as long as `mine`, in rank order; equal sizes on all ranks.
    void all_gather_into(std::span<const std::byte> mine, std::span<std::byte> all,
                         CallSite site = CallSite::here());
    /// Everybody's bytes in rank order on `root`, empty elsewhere; sizes may differ.
    [[nodiscard]] std::vector<Bytes> gather(std::span<const std::byte> mine, int root,
                                            CallSite site = CallSite::here());
    /// Gives each rank its part: size() parts on `root`, which may differ in size; none elsewhere.
    [[nodiscard]] Bytes scatter(std::span<const Bytes> parts, int root,
                                CallSite site = CallSite::here());
    /// Part r goes to rank r; returns what the ranks gave this one, in rank order.
    [[nodiscard]] std::vector<Bytes> all_to_all(std::span<const Bytes> parts,
                                                CallSite site = CallSite::here());

    /// Element-wise over ranks in ascending rank order, so that sums have the same bits everywhere.
    void all_reduce(std::span<float> values, ReduceOp op, CallSite site = CallSite::here());
    void all_reduce(std::span<double> values, ReduceOp op, CallSite site = CallSite::here());
    void all_reduce(std::span<std::int64_t> values, ReduceOp op, CallSite site = CallSite::here());
    /// The same, each rank getting the size()-th part of `values` that has its number.
    void reduce_scatter(std::span<const float> values, std::span<float> mine, ReduceOp op,
                        CallSite site = CallSite::here());
    void reduce_scatter(std::span<const double> values, std::span<double> mine, ReduceOp op,
                        CallSite site = CallSite::here());
    void reduce_scatter(std::span<const std::int64_t> values, std::span<std::int64_t> mine,
                        ReduceOp op, CallSite site = CallSite::here());

    /// Texts (serialised objects) of all ranks in rank order. `purpose` names the operation that
    /// gathers them ("SwapAdamW::load: check"): two operations of one kind never meet in one call.
    [[nodiscard]] std::vector<std::string> all_gather_object(const std::string& mine,
                                                             std::string_view purpose,
                                                             CallSite site = CallSite::here());
    /// The same on `root`, empty elsewhere.
    [[nodiscard]] std::vector<std::string> gather_object(const std::string& mine, int root,
                                                         CallSite site = CallSite::here());

    /// Point to point, between these two ranks alone: send() returns when the bytes were received.
    void send(std::span<const std::byte> data, int to, CallSite site = CallSite::here());
    [[nodiscard]] Bytes receive(int from, CallSite site = CallSite::here());

    /// Collective. The ranks that gave the same `color` become a group, in rank order; nullptr for
    /// a negative one. The group must not outlive this communicator.
    [[nodiscard]] std::unique_ptr<Communicator> split(int color, CallSite site = CallSite::here());
    /// Collective. The group of the ranks that differ from this one in their coordinate on `axis`
    /// alone, where the ranks are numbered row by row over a mesh of these dimensions.
    [[nodiscard]] std::unique_ptr<Communicator> split_mesh(std::span<const std::int64_t> mesh,
                                                           std::size_t axis,
                                                           CallSite site = CallSite::here());
    /// Collective. The same members for work in the background: its calls may run at the same time
    /// as those here, from another thread of the rank. Must not outlive this communicator.
    [[nodiscard]] std::unique_ptr<Communicator> dup(CallSite site = CallSite::here());

  protected:
    Communicator() = default;

    /// The one primitive: checks `call` against that of every member (ascending ranks of this
    /// communicator, this one among them), then hands each what the others give it.
    virtual void exchange(const CollectiveCall& call, std::span<const int> members,
                          const Outgoing& mine, Incoming& theirs) = 0;

    /// Calls on different channels do not meet. This rank's lowest channel never used so far, and a
    /// communicator of this rank on such a one; ArgumentError where there is none left.
    [[nodiscard]] virtual int free_channel() const noexcept = 0;
    [[nodiscard]] virtual std::unique_ptr<Communicator> open_channel(int channel) = 0;

    /// Of a group or a dup: how its calls name it.
    void set_group(std::string name) { group_ = std::move(name); }

  private:
    friend class Group;

    CollectiveCall next_call(std::string_view operation, std::string_view dtype, CallSite site);
    void run(const CollectiveCall& call, const Outgoing& mine, Incoming& theirs);
    void exchange_with(int other, int root, const Outgoing& mine, Incoming& theirs, CallSite site);
    template <class T>
    void all_reduce_of(std::span<T> values, ReduceOp op, CallSite site);
    template <class T>
    void reduce_scatter_of(std::span<const T> values, std::span<T> mine, ReduceOp op,
                           CallSite site);

    std::string group_ = "world";
    std::uint64_t sequence_ = 0;
    std::vector<std::uint64_t> sequences_of_pairs_;  ///< by the other rank
    std::vector<int> everybody_;
};

}  // namespace swaplab::sim
