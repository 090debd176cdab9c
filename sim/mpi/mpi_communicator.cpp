#include "mpi/mpi_communicator.hpp"

#include "swaplab/sim/call_record.hpp"
#include "swaplab/sim/error.hpp"

#include <algorithm>
#include <limits>
#include <mpi.h>
#include <string>
#include <utility>
#include <vector>

namespace swaplab::sim {
namespace {

/// A call, and how many bytes follow it for the receiver.
struct Announcement {
    CallRecord call;
    std::uint64_t bytes = 0;
};

/// Sends and receives of one exchange, ended together.
class Messages {
  public:
    Messages(MPI_Comm comm, int tag) noexcept : comm_(comm), tag_(tag) {}

    void send(int to, const void* data, std::uint64_t bytes) {
        each_piece(bytes, [&](std::uint64_t begin, int count) {
            MPI_Isend(static_cast<const char*>(data) + begin, count, MPI_BYTE, to, tag_, comm_,
                      next());
        });
    }
    void receive(int from, void* data, std::uint64_t bytes) {
        each_piece(bytes, [&](std::uint64_t begin, int count) {
            MPI_Irecv(static_cast<char*>(data) + begin, count, MPI_BYTE, from, tag_, comm_, next());
        });
    }
    void finish() {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
    }

  private:
    // MPI counts in int.
    template <class F>
    static void each_piece(std::uint64_t bytes, F transfer) {
        constexpr std::uint64_t piece_max = std::uint64_t{1} << 30U;
        for (std::uint64_t begin = 0; begin < bytes; begin += piece_max) {
            transfer(begin, static_cast<int>(std::min(piece_max, bytes - begin)));
        }
    }
    MPI_Request* next() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

    MPI_Comm comm_;
    int tag_;
    std::vector<MPI_Request> requests_;
};

class MpiCommunicator final : public Communicator {
  public:
    /// `next_channel` is the rank's, shared by its channels; each channel is a tag.
    MpiCommunicator(std::shared_ptr<const MPI_Comm> comm, int channel,
                    std::shared_ptr<int> next_channel)
        : comm_(std::move(comm)), channel_(channel), next_channel_(std::move(next_channel)) {
        MPI_Comm_rank(*comm_, &rank_);
        MPI_Comm_size(*comm_, &size_);
    }

    [[nodiscard]] int rank() const noexcept override { return rank_; }
    [[nodiscard]] int size() const noexcept override { return size_; }

  protected:
    void exchange(const CollectiveCall& call, std::span<const int> members, const Outgoing& mine,
                  Incoming& theirs) override {
        const CallRecord record = record_of(call);
        const std::vector<Announcement> announced = announce(record, members, mine);
        std::vector<MemberCall> calls;
        for (std::size_t i = 0; i < members.size(); ++i) {
            calls.push_back({members[i], announced[i].call});
        }
        require_same_calls(calls);
        move(announced, members, mine, theirs);
    }

    [[nodiscard]] int free_channel() const noexcept override { return *next_channel_; }

    [[nodiscard]] std::unique_ptr<Communicator> open_channel(int channel) override {
        *next_channel_ = channel + 1;
        return std::make_unique<MpiCommunicator>(comm_, channel, next_channel_);
    }

  private:
    /// The bytes for one member.
    static std::span<const std::byte> part(const Outgoing& mine, std::size_t member) {
        if (mine.part_bytes.empty()) {
            return mine.bytes;
        }
        std::uint64_t begin = 0;
        for (std::size_t i = 0; i < member; ++i) {
            begin += mine.part_bytes[i];
        }
        return mine.bytes.subspan(begin, mine.part_bytes[member]);
    }

    /// Tells everybody what this rank calls; returns what the members call.
    std::vector<Announcement> announce(const CallRecord& record, std::span<const int> members,
                                       const Outgoing& mine) {
        std::vector<Announcement> own;
        for (std::size_t i = 0; i < members.size(); ++i) {
            own.push_back({record, part(mine, i).size()});
        }
        std::vector<Announcement> announced(members.size());
        Messages messages(*comm_, channel_);
        for (std::size_t i = 0; i < members.size(); ++i) {
            messages.receive(members[i], &announced[i], sizeof(Announcement));
        }
        for (std::size_t i = 0; i < members.size(); ++i) {
            messages.send(members[i], &own[i], sizeof(Announcement));
        }
        messages.finish();
        return announced;
    }

    void move(const std::vector<Announcement>& announced, std::span<const int> members,
              const Outgoing& mine, Incoming& theirs) {
        std::vector<Bytes> received(members.size());
        Messages messages(*comm_, channel_);
        for (std::size_t i = 0; i < members.size(); ++i) {
            theirs.expect(i, announced[i].bytes);
            received[i].resize(announced[i].bytes);
            messages.receive(members[i], received[i].data(), received[i].size());
        }
        for (std::size_t i = 0; i < members.size(); ++i) {
            messages.send(members[i], part(mine, i).data(), part(mine, i).size());
        }
        messages.finish();
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (!received[i].empty()) {
                theirs.take(i, 0, received[i]);
            }
        }
    }

    std::shared_ptr<const MPI_Comm> comm_;
    int channel_;
    std::shared_ptr<int> next_channel_;
    int rank_ = 0;
    int size_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator() {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const std::shared_ptr<const MPI_Comm> owner(new MPI_Comm(comm), [](const MPI_Comm* mine) {
        MPI_Comm last = *mine;
        MPI_Comm_free(&last);
        delete mine;
    });
    return std::make_unique<MpiCommunicator>(owner, 0, std::make_shared<int>(1));
}

}  // namespace swaplab::sim
