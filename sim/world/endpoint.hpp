#pragma once

/// A rank's communicator in the worlds of this project: exchanges over the board.

#include "world/world_state.hpp"

namespace swaplab::sim {

class Endpoint final : public Communicator {
  public:
    /// `next_channel` is the rank's, shared by its channels.
    Endpoint(WorldState& world, int rank, int channel,
             std::shared_ptr<std::atomic<int>> next_channel);
    Endpoint(WorldState& world, int rank);

    [[nodiscard]] int rank() const noexcept override { return rank_; }
    [[nodiscard]] int size() const noexcept override { return world_.size(); }

  protected:
    void exchange(const CollectiveCall& call, std::span<const int> members, const Outgoing& mine,
                  Incoming& theirs) override;
    [[nodiscard]] int free_channel() const noexcept override { return next_channel_->load(); }
    [[nodiscard]] std::unique_ptr<Communicator> open_channel(int channel) override;

  private:
    friend class Transfer;

    WorldState& world_;
    int rank_;
    int channel_;
    std::shared_ptr<std::atomic<int>> next_channel_;
    std::uint64_t shown_ = 0;  ///< blocks so far
};

}  // namespace swaplab::sim
