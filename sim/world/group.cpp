/// Groups of ranks and second channels, made of exchanges among members alone.

#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace swaplab::sim {

/// Some ranks of another communicator, numbered from 0.
class Group final : public Communicator {
  public:
    Group(Communicator& parent, std::vector<int> members, std::string name)
        : parent_(parent), members_(std::move(members)) {
        const auto mine = std::find(members_.begin(), members_.end(), parent_.rank());
        rank_ = static_cast<int>(mine - members_.begin());
        set_group(std::move(name));
    }
    Group(std::unique_ptr<Communicator> parent, std::vector<int> members, std::string name)
        : Group(*parent, std::move(members), std::move(name)) {
        owned_parent_ = std::move(parent);
    }

    [[nodiscard]] int rank() const noexcept override { return rank_; }
    [[nodiscard]] int size() const noexcept override { return static_cast<int>(members_.size()); }

  protected:
    void exchange(const CollectiveCall& call, std::span<const int> members, const Outgoing& mine,
                  Incoming& theirs) override {
        std::vector<int> ranks;
        for (const int member : members) {
            ranks.push_back(members_[static_cast<std::size_t>(member)]);
        }
        parent_.exchange(call, ranks, mine, theirs);
    }
    [[nodiscard]] int free_channel() const noexcept override { return parent_.free_channel(); }
    [[nodiscard]] std::unique_ptr<Communicator> open_channel(int channel) override {
        return std::make_unique<Group>(parent_.open_channel(channel), members_, "");
    }

  private:
    Communicator& parent_;
    std::unique_ptr<Communicator> owned_parent_;
    std::vector<int> members_;
    int rank_ = 0;
};

namespace {

class Numbers final : public Incoming {
  public:
    explicit Numbers(int members) : values(static_cast<std::size_t>(members)) {}
    void take(std::size_t member, std::uint64_t /*offset*/,
              std::span<const std::byte> block) override {
        std::copy(block.begin(), block.end(),
                  std::as_writable_bytes(std::span(&values[member], 1)).begin());
    }
    std::vector<int> values;
};

}  // namespace

std::unique_ptr<Communicator> Communicator::split(int color, CallSite site) {
    Numbers colors(size());
    run(next_call("split", "int32", site), {std::as_bytes(std::span(&color, 1)), {}}, colors);
    if (color < 0) {
        return nullptr;
    }
    std::vector<int> members;
    for (int rank = 0; rank < size(); ++rank) {
        if (colors.values[static_cast<std::size_t>(rank)] == color) {
            members.push_back(rank);
        }
    }
    return std::make_unique<Group>(*this, std::move(members),
                                   fmt::format("{}/{}#{}", group_, color, sequence_));
}

std::unique_ptr<Communicator> Communicator::split_mesh(std::span<const std::int64_t> mesh,
                                                       std::size_t axis, CallSite site) {
    std::int64_t ranks = 1;
    for (const std::int64_t dim : mesh) {
        ranks = dim >= 1 && dim <= size() ? ranks * dim : 0;
    }
    if (axis >= mesh.size() || ranks != size()) {
        throw ArgumentError(fmt::format("axis {} of mesh [{}] does not split {} ranks ({})", axis,
                                        fmt::join(mesh, ","), size(), format_site(site)),
                            {{"parameter", "mesh"},
                             {"expected", std::to_string(size())},
                             {"found", std::to_string(ranks)},
                             {"site", format_site(site)}});
    }
    const std::int64_t stride =
        std::accumulate(mesh.begin() + static_cast<std::ptrdiff_t>(axis) + 1, mesh.end(),
                        std::int64_t{1}, std::multiplies<>());
    const std::int64_t above = rank() / (stride * mesh[axis]);
    return split(static_cast<int>(above * stride + rank() % stride), site);
}

std::unique_ptr<Communicator> Communicator::dup(CallSite site) {
    const int mine = free_channel();
    Numbers offers(size());
    run(next_call("dup", "int32", site), {std::as_bytes(std::span(&mine, 1)), {}}, offers);
    const int channel = *std::max_element(offers.values.begin(), offers.values.end());
    std::unique_ptr<Communicator> other = open_channel(channel);
    other->set_group(fmt::format("{}+{}", group_, channel));
    return other;
}

}  // namespace swaplab::sim
