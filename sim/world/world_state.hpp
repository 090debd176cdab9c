#pragma once

/// What all kinds of worlds share: the board, and how a world breaks.

#include "world/board.hpp"
#include "world/hub.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/world.hpp"

#include <chrono>
#include <exception>
#include <string>

namespace swaplab::sim {

class WorldState {
  public:
    /// `file`: see Board.
    WorldState(const WorldOptions& options, Hub& hub, int file = Board::no_file);

    [[nodiscard]] static BoardSize board_size(const WorldOptions& options) noexcept;

    [[nodiscard]] const WorldOptions& options() const noexcept { return options_; }
    [[nodiscard]] Board& board() noexcept { return board_; }
    [[nodiscard]] Hub& hub() noexcept { return hub_; }
    [[nodiscard]] int size() const noexcept { return board_.ranks(); }

    /// The rank is at this point of its way: noted, and the place where faults happen.
    void at(int rank, RankPhase phase);

    /// Whether some rank has neither begun its program nor ended, and may still take its time.
    [[nodiscard]] bool starting() const;

    /// Says how a rank ended, for ever, and wakes whoever waits for it.
    void end(int rank, End how, std::string_view reason);

    /// The first breach of a world stays: all ranks leave because of it. `finder` has found it.
    void break_by_mismatch(int finder, const CollectiveMismatch& error);
    void break_by(Breach how, int rank, int finder);
    [[nodiscard]] bool broken() noexcept;
    /// For a rank at `call`.
    void throw_if_broken(const CallRecord& call);

    /// "was killed by signal 9 (Killed)", and where the rank was seen last.
    [[nodiscard]] RankLost lost(int rank, std::string_view before, ErrorFields more) const;
    /// Wakes every rank that sleeps on any channel.
    void wake_all();

    /// Called by a rank that uses a channel.
    void open(int channel);

  private:
    [[nodiscard]] std::string where(int rank) const;
    [[nodiscard]] ErrorFields where_fields(int rank) const;

    WorldOptions options_;
    std::chrono::steady_clock::time_point born_;
    Board board_;
    Hub& hub_;
};

/// The text of what was thrown.
[[nodiscard]] std::string text_of(const std::exception_ptr& error);

}  // namespace swaplab::sim
