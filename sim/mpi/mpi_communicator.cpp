#include "mpi/mpi_communicator.hpp"

#include "swaplab/sim/call_record.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mpi.h>
#include <thread>
#include <utility>

namespace swaplab::sim {
namespace {

constexpr int goodbye = 32'767;  // MPI allows tags up to this one; those below are channels

/// What the channels of a rank share.
struct MpiWorld {
    explicit MpiWorld(std::chrono::milliseconds wait_max) : deadline(wait_max) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
    }
    [[nodiscard]] bool has_left(int other) const {
        int left = 0;
        MPI_Iprobe(other, goodbye, comm, &left, MPI_STATUS_IGNORE);
        return left != 0;
    }

    std::chrono::milliseconds deadline;
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int size = 1;
    std::atomic<int> next_channel{1};
    std::atomic<bool> broken{false};
};

/// Sends and receives under one tag, ended together.
class Messages {
  public:
    Messages(const MpiWorld& world, int tag) noexcept : world_(world), tag_(tag) {}

    void send(int to, const void* data, std::uint64_t bytes) {
        each_piece(MPI_Isend, to, static_cast<const char*>(data), bytes);
    }
    void receive(int from, void* data, std::uint64_t bytes) {
        each_piece(MPI_Irecv, from, static_cast<char*>(data), bytes);
    }
    /// Waits for all. Returns a rank that left or is late instead, or -1.
    [[nodiscard]] int missing() {
        const auto until = std::chrono::steady_clock::now() + world_.deadline;
        for (int other = not_done(); other >= 0; other = not_done()) {
            const bool in_vain = tag_ != goodbye && (world_.broken || world_.has_left(other));
            if ((in_vain || std::chrono::steady_clock::now() > until) && not_done() == other) {
                return other;  // nothing of it was under way
            }
            std::this_thread::yield();
        }
        return -1;
    }

  private:
    // MPI counts in int.
    template <class Call, class Data>
    void each_piece(Call call, int other, Data* data, std::uint64_t bytes) {
        constexpr std::uint64_t piece_max = std::uint64_t{1} << 30U;
        for (std::uint64_t begin = 0; begin < bytes; begin += piece_max) {
            call(data + begin, static_cast<int>(std::min(piece_max, bytes - begin)), MPI_BYTE,
                 other, tag_, world_.comm, &requests_.emplace_back(other, MPI_REQUEST_NULL).second);
        }
    }
    [[nodiscard]] int not_done() {
        for (auto& [other, request] : requests_) {
            int done = 0;
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            if (done == 0) {
                return other;
            }
        }
        return -1;
    }

    const MpiWorld& world_;
    int tag_;
    std::vector<std::pair<int, MPI_Request>> requests_;
};

/// Tells all others that this rank leaves and waits until they do: nothing is under way then.
void end(MpiWorld* world) {
    static std::byte unread{};
    Messages messages(*world, goodbye);
    for (int other = 0; other < world->size; ++other) {
        messages.receive(other, &unread, 1);
        messages.send(other, &unread, 1);
    }
    if (messages.missing() < 0) {
        MPI_Comm_free(&world->comm);
    }
    delete world;
}

/// A call, and how many bytes follow it for the receiver.
struct Announcement {
    CallRecord call;
    std::uint64_t bytes = 0;
};

class MpiCommunicator final : public Communicator {
  public:
    MpiCommunicator(std::shared_ptr<MpiWorld> world, int channel)
        : world_(std::move(world)), channel_(channel) {}

    [[nodiscard]] int rank() const noexcept override { return world_->rank; }
    [[nodiscard]] int size() const noexcept override { return world_->size; }

  protected:
    void exchange(const CollectiveCall& call, std::span<const int> members, const Outgoing& mine,
                  Incoming& theirs) override {
        auto buffers = std::make_unique<Buffers>();
        try {
            exchange_through(*buffers, record_of(call), members, mine);
            for (std::size_t i = 0; i < members.size(); ++i) {
                theirs.expect(i, buffers->received[i].size());
            }
            for (std::size_t i = 0; i < members.size(); ++i) {
                if (!buffers->received[i].empty()) {
                    theirs.take(i, 0, buffers->received[i]);
                }
            }
        } catch (...) {
            world_->broken = true;
            static_cast<void>(buffers.release());  // MPI may touch it yet
            throw;
        }
    }
    [[nodiscard]] int free_channel() const noexcept override { return world_->next_channel; }
    [[nodiscard]] std::unique_ptr<Communicator> open_channel(int channel) override {
        world_->next_channel = channel + 1;
        return std::make_unique<MpiCommunicator>(world_, channel);
    }

  private:
    struct Buffers {
        Bytes mine;
        std::vector<Announcement> own, announced;
        std::vector<Bytes> received;
    };

    void exchange_through(Buffers& buffers, const CallRecord& record, std::span<const int> members,
                          const Outgoing& mine) {
        buffers.own.assign(members.size(), {record, mine.bytes.size()});
        buffers.announced.resize(members.size());
        Messages announcements(*world_, channel_);
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (!mine.part_bytes.empty()) {
                buffers.own[i].bytes = mine.part_bytes[i];
            }
            announcements.receive(members[i], &buffers.announced[i], sizeof(Announcement));
            announcements.send(members[i], &buffers.own[i], sizeof(Announcement));
        }
        finish(announcements, record);
        std::vector<MemberCall> calls;
        for (std::size_t i = 0; i < members.size(); ++i) {
            calls.push_back({members[i], buffers.announced[i].call});
        }
        require_same_calls(calls);

        buffers.mine.assign(mine.bytes.begin(), mine.bytes.end());
        buffers.received.resize(members.size());
        Messages data(*world_, channel_);
        std::uint64_t begin = 0;
        for (std::size_t i = 0; i < members.size(); ++i) {
            buffers.received[i].resize(buffers.announced[i].bytes);
            data.receive(members[i], buffers.received[i].data(), buffers.received[i].size());
            data.send(members[i], buffers.mine.data() + begin, buffers.own[i].bytes);
            begin += mine.part_bytes.empty() ? 0 : buffers.own[i].bytes;
        }
        finish(data, record);
    }

    void finish(Messages& messages, const CallRecord& record) {
        const int other = world_->broken ? rank() : messages.missing();
        if (other < 0) {
            return;
        }
        const bool left = world_->broken || world_->has_left(other);
        const std::string text =
            fmt::format("rank {} of {} {} {}", other, size(),
                        left ? "lost: left before" : "did not come to", describe(record));
        ErrorFields fields{{"rank", fmt::format("rank {}", other)}, {"site", site_of(record)}};
        left ? throw RankLost(text, std::move(fields))
             : throw DeadlineExceeded(text, std::move(fields));
    }

    std::shared_ptr<MpiWorld> world_;
    int channel_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(std::chrono::milliseconds deadline) {
    return std::make_unique<MpiCommunicator>(std::shared_ptr<MpiWorld>(new MpiWorld(deadline), end),
                                             0);
}

}  // namespace swaplab::sim
