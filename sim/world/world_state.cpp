#include "world/world_state.hpp"

#include "world/error_message.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace swaplab::sim {
namespace {

constexpr std::uint64_t pack(Breach how, int rank, int finder) {
    return static_cast<std::uint64_t>(how) | static_cast<std::uint64_t>(rank) << 8U |
           static_cast<std::uint64_t>(finder) << 16U;
}

Breach kind_of(std::uint64_t breach) {
    return static_cast<Breach>(breach & 0xffU);
}

int rank_of(std::uint64_t breach) {
    return static_cast<int>(breach >> 8U & 0xffU);
}

int finder_of(std::uint64_t breach) {
    return static_cast<int>(breach >> 16U & 0xffU);
}

std::string_view word_of(End end) {
    constexpr std::string_view words[] = {"running", "returned", "threw",  "trapped",
                                          "killed",  "exited",   "stopped"};
    return words[static_cast<std::size_t>(end)];
}

void append(ErrorFields& fields, ErrorFields more) {
    for (ErrorField& field : more) {
        fields.push_back(std::move(field));
    }
}

ErrorFields fields_of(const CallRecord& call) {
    return {{"operation", call.operation},
            {"sequence", std::to_string(call.sequence)},
            {"purpose", call.purpose},
            {"group", call.group},
            {"site", site_of(call)}};
}

}  // namespace

std::string text_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& exception) {
        return exception.what();
    } catch (...) {
        return "something that is no std::exception";
    }
}

BoardSize WorldState::board_size(const WorldOptions& options) noexcept {
    return {options.size, options.staging_bytes, options.value_bytes + 1};
}

WorldState::WorldState(const WorldOptions& options, Hub& hub, int file)
    : options_(options),
      born_(std::chrono::steady_clock::now()),
      board_(board_size(options), file),
      hub_(hub) {}

void WorldState::at(int rank, RankPhase phase) {
    board_.seat(rank).phase.store(static_cast<std::uint32_t>(phase), std::memory_order_relaxed);
    if (options_.on_phase) {
        options_.on_phase(rank, phase);
    }
}

void WorldState::open(int channel) {
    std::atomic<std::uint32_t>& used = board_.header().channels_used;
    std::uint32_t before = used.load();
    const auto wanted = static_cast<std::uint32_t>(channel) + 1;
    while (before < wanted && !used.compare_exchange_weak(before, wanted)) {
    }
}

bool WorldState::starting() const {
    if (SWAPLAB_MUTANT("world.deadline_counts_start") ||
        (std::chrono::steady_clock::now() - born_ > options_.start_max &&
         !SWAPLAB_MUTANT("world.start_unbounded"))) {
        return false;
    }
    for (int rank = 0; rank < size(); ++rank) {
        const Seat& seat = board_.seat(rank);
        if (!seat.present.load() && seat.end.load() == End::running) {
            return true;
        }
    }
    return false;
}

void WorldState::end(int rank, End how, std::string_view reason) {
    Seat& seat = board_.seat(rank);
    seat.reason.store(reason);
    seat.end.store(how);
    wake_all();
}

void WorldState::wake_all() {
    const auto used = static_cast<int>(board_.header().channels_used.load());
    for (int channel = 0; channel < used; ++channel) {
        for (int rank = 0; rank < size(); ++rank) {
            Slot& slot = board_.slot(channel, rank);
            if (slot.waits_for.load() != 0 || slot.drains.load() != 0) {
                slot.bell.fetch_add(1);
                hub_.wake(rank, slot);
            }
        }
    }
}

void WorldState::break_by_mismatch(int finder, const CollectiveMismatch& error) {
    const auto thrown = std::make_exception_ptr(error);
    board_.seat(finder).verdict.store(
        encode_error(thrown, sizeof(board_.seat(finder).verdict.text)));
    break_by(Breach::mismatch, finder, finder);
}

void WorldState::break_by(Breach how, int rank, int finder) {
    std::uint64_t none = 0;
    if (board_.header().breach.compare_exchange_strong(none, pack(how, rank, finder))) {
        wake_all();
    }
}

bool WorldState::broken() noexcept {
    return board_.header().breach.load() != 0;
}

void WorldState::throw_if_broken(const CallRecord& call) {
    const std::uint64_t breach = board_.header().breach.load();
    const int rank = rank_of(breach);
    switch (kind_of(breach)) {
        case Breach::none:
            return;
        case Breach::mismatch:
            std::rethrow_exception(decode_error(board_.seat(finder_of(breach)).verdict.view()));
        case Breach::lost:
            throw lost(rank, " before " + describe(call), fields_of(call));
        case Breach::late:
            break;
    }
    ErrorFields fields{{"rank", fmt::format("rank {}", rank)}};
    append(fields, fields_of(call));
    append(fields, where_fields(rank));
    throw DeadlineExceeded(fmt::format("rank {} of {} did not come to {}: {}", rank, size(),
                                       describe(call), where(rank)),
                           std::move(fields));
}

std::string WorldState::where(int rank) const {
    const Seat& seat = board_.seat(rank);
    const auto phase = static_cast<RankPhase>(seat.phase.load());
    const std::uint32_t calls = seat.calls.load();
    if (calls == 0) {
        return fmt::format("last seen {}, before its first collective", name_of(phase));
    }
    return fmt::format("last seen {}, collective {} of its own: {}", name_of(phase), calls,
                       describe(seat.last_call.load()));
}

ErrorFields WorldState::where_fields(int rank) const {
    const Seat& seat = board_.seat(rank);
    const CallRecord call = seat.last_call.load();
    ErrorFields fields{
        {"last_phase", std::string(name_of(static_cast<RankPhase>(seat.phase.load())))},
        {"last_progress", std::to_string(seat.calls.load())}};
    if (seat.calls.load() != 0) {
        append(fields, {{"last_operation", call.operation},
                        {"last_sequence", std::to_string(call.sequence)},
                        {"last_site", site_of(call)}});
    }
    return fields;
}

RankLost WorldState::lost(int rank, std::string_view before, ErrorFields more) const {
    const Seat& seat = board_.seat(rank);
    const End end = seat.end.load();
    const std::string reason(seat.reason.view());
    ErrorFields fields{{"rank", fmt::format("rank {}", rank)},
                       {"end", std::string(word_of(end))},
                       {"reason", reason}};
    append(fields, std::move(more));
    append(fields, where_fields(rank));
    return RankLost(fmt::format("rank {} of {} lost: {}{}{}{}; {}", rank, size(), word_of(end),
                                before, reason.empty() ? "" : ": ", reason, where(rank)),
                    std::move(fields));
}

}  // namespace swaplab::sim
