#include "collective_programs.hpp"

#include "swaplab/sim/digest.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace swaplab::sim {
namespace {

void require(bool condition, const std::string& claim) {
    if (!condition) {
        throw std::runtime_error("not so: " + claim);
    }
}

/// Bytes that tell their place and their maker; as many as `maker` and `of` make of `unit`.
Bytes pattern(int maker, int of, std::size_t unit) {
    Bytes bytes(unit * static_cast<std::size_t>((maker * 7 + of * 3) % 5));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] =
            static_cast<std::byte>(i * 31 + i / 256 + static_cast<std::size_t>(maker * 17 + of));
    }
    return bytes;
}

template <class T>
std::vector<T> numbers(int maker, std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto sign = (i + static_cast<std::size_t>(maker)) % 2 == 0 ? T{1} : T{-1};
        values[i] = sign * (static_cast<T>(i % 1000) + static_cast<T>(maker) / T{3});
    }
    return values;
}

template <class T>
std::vector<T> sums(int ranks, std::size_t count) {
    std::vector<T> all = numbers<T>(0, count);
    for (int rank = 1; rank < ranks; ++rank) {
        const std::vector<T> one = numbers<T>(rank, count);
        std::transform(all.begin(), all.end(), one.begin(), all.begin(), std::plus<>());
    }
    return all;
}

constexpr std::size_t units[] = {0, 1, 4096, 5000, 100'001};

void all_gather_returns_uneven_parts_in_rank_order(Communicator& world) {
    for (const std::size_t unit : units) {
        const std::vector<Bytes> all = world.all_gather(pattern(world.rank(), 1, unit));
        for (int rank = 0; rank < world.size(); ++rank) {
            require(all[static_cast<std::size_t>(rank)] == pattern(rank, 1, unit), "part");
        }
    }
}

void all_gather_into_fills_memory_that_is_there(Communicator& world) {
    const auto ranks = static_cast<std::size_t>(world.size());
    for (const std::size_t size : units) {
        const Bytes mine(size, static_cast<std::byte>(world.rank() + 1));
        Bytes all(size * ranks);
        world.all_gather_into(mine, all);
        for (std::size_t i = 0; i < all.size(); ++i) {
            require(all[i] == static_cast<std::byte>(i / size + 1), "byte");
        }
    }
}

void broadcast_hands_everybody_the_roots_bytes(Communicator& world) {
    for (int root = 0; root < world.size(); ++root) {
        for (const std::size_t unit : units) {
            const Bytes expected = pattern(root, 4, unit);
            Bytes data = world.rank() == root ? expected : Bytes(expected.size());
            world.broadcast(data, root);
            require(data == expected, "broadcast");
        }
    }
}

void gather_gives_the_parts_to_the_root_only(Communicator& world) {
    const int root = world.size() - 1;
    for (const std::size_t unit : units) {
        const std::vector<Bytes> all = world.gather(pattern(world.rank(), 0, unit), root);
        require(all.size() == static_cast<std::size_t>(world.rank() == root ? world.size() : 0),
                "parts on the root only");
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            require(all[rank] == pattern(static_cast<int>(rank), 0, unit), "part");
        }
    }
}

void scatter_gives_each_rank_its_part(Communicator& world) {
    for (const std::size_t unit : units) {
        std::vector<Bytes> parts;
        for (int rank = 0; rank < world.size() && world.rank() == 0; ++rank) {
            parts.push_back(pattern(0, rank, unit));
        }
        require(world.scatter(parts, 0) == pattern(0, world.rank(), unit), "part");
    }
}

void all_to_all_transposes_parts(Communicator& world) {
    for (const std::size_t unit : units) {
        std::vector<Bytes> parts;
        for (int rank = 0; rank < world.size(); ++rank) {
            parts.push_back(pattern(world.rank(), rank, unit));
        }
        const std::vector<Bytes> received = world.all_to_all(parts);
        for (int rank = 0; rank < world.size(); ++rank) {
            require(received[static_cast<std::size_t>(rank)] == pattern(rank, world.rank(), unit),
                    "part");
        }
    }
}

template <class T>
void check_reductions(Communicator& world, std::size_t count) {
    const auto ranks = static_cast<std::size_t>(world.size());
    const std::vector<T> expected = sums<T>(world.size(), count * ranks);
    std::vector<T> values = numbers<T>(world.rank(), count * ranks);
    std::vector<T> part(count);
    world.reduce_scatter(std::span<const T>(values), std::span<T>(part), ReduceOp::sum);
    world.all_reduce(std::span<T>(values), ReduceOp::sum);
    require(values == expected, "sum in rank order");
    const auto begin = values.begin() +
                       static_cast<std::ptrdiff_t>(count * static_cast<std::size_t>(world.rank()));
    require(std::equal(part.begin(), part.end(), begin), "part of the sum");
}

void sums_are_made_in_ascending_rank_order_element_by_element(Communicator& world) {
    for (const std::size_t count : {0U, 1U, 513U, 20'001U}) {
        check_reductions<float>(world, count);
        check_reductions<double>(world, count);
        check_reductions<std::int64_t>(world, count);
    }
}

void minima_and_maxima_are_those_of_all_ranks(Communicator& world) {
    std::vector<double> values{static_cast<double>(world.rank()), -1.0};
    world.all_reduce(std::span(values), ReduceOp::max);
    require(values[0] == world.size() - 1 && values[1] == -1.0, "max");
    values[0] = world.rank();
    world.all_reduce(std::span(values), ReduceOp::min);
    require(values[0] == 0.0, "min");
}

void objects_come_in_rank_order(Communicator& world) {
    const auto object = [](int rank) { return std::string(static_cast<std::size_t>(rank), 'x'); };
    const auto all = world.all_gather_object(object(world.rank()), "test");
    const auto rooted = world.gather_object(object(world.rank()), 0);
    require(rooted == (world.rank() == 0 ? all : std::vector<std::string>{}), "on the root");
    for (int rank = 0; rank < world.size(); ++rank) {
        require(all[static_cast<std::size_t>(rank)] == object(rank), "object");
    }
}

void bytes_go_around_a_ring_from_point_to_point(Communicator& world) {
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    for (const std::size_t unit : units) {
        if (world.size() == 1) {
            return;
        }
        const Bytes mine = pattern(world.rank(), 2, unit);
        Bytes received;
        if (world.rank() % 2 == 0 && world.rank() != world.size() - 1) {
            world.send(mine, next);
            received = world.receive(previous);
        } else {
            received = world.receive(previous);
            world.send(mine, next);
        }
        require(received == pattern(previous, 2, unit), "what the previous rank sent");
    }
    world.barrier();
}

void groups_of_one_color_talk_among_themselves(Communicator& world) {
    const bool alone = world.rank() == 2;
    const auto group = world.split(alone ? -1 : world.rank() % 2);
    require((group == nullptr) == alone, "no group for a negative color");
    if (group) {
        std::int64_t sum = world.rank();
        // Groups go on at their own pace.
        for (int round = 0; round <= world.rank() % 2; ++round) {
            sum = world.rank();
            group->all_reduce(std::span(&sum, 1), ReduceOp::sum);
        }
        std::int64_t expected = 0;
        for (int rank = world.rank() % 2; rank < world.size(); rank += 2) {
            expected += rank == 2 ? 0 : rank;
        }
        require(sum == expected, "sum of the group");
    }
    world.barrier();
}

void mesh_axes_are_groups_of_ranks_that_differ_in_one_coordinate(Communicator& world) {
    const std::int64_t rows = world.size() % 2 == 0 ? 2 : 1;
    const std::int64_t mesh[] = {rows, world.size() / rows};
    const auto column = world.split_mesh(mesh, 0);
    const auto row = world.split_mesh(mesh, 1);
    require(column->size() == rows && row->size() == mesh[1], "sizes");
    require(row->rank() + column->rank() * mesh[1] == world.rank(), "coordinates");
    const auto inner = row->split(0);
    const auto all = inner->all_gather_object(std::to_string(world.rank()), "ranks");
    require(all.front() == std::to_string(column->rank() * mesh[1]), "first of the row");
}

void a_dup_is_an_independent_channel_of_the_same_ranks(Communicator& world) {
    const auto other = world.dup();
    require(other->rank() == world.rank() && other->size() == world.size(), "same ranks");
    for (int round = 0; round < 3; ++round) {
        std::int64_t sum = 1;
        other->all_reduce(std::span(&sum, 1), ReduceOp::sum);
        world.all_reduce(std::span(&sum, 1), ReduceOp::sum);
        require(sum == world.size() * world.size(), "both sums");
    }
    const auto group = world.split(world.rank() % 2);
    const auto group_dup = group->dup();
    group_dup->barrier();
    const auto third = world.dup();
    third->barrier();
}

}  // namespace

std::vector<CollectiveProgram> collective_programs() {
    return {
        {"AllGatherReturnsUnevenPartsInRankOrder", all_gather_returns_uneven_parts_in_rank_order},
        {"AllGatherIntoFillsMemoryThatIsThere", all_gather_into_fills_memory_that_is_there},
        {"BroadcastHandsEverybodyTheRootsBytes", broadcast_hands_everybody_the_roots_bytes},
        {"GatherGivesThePartsToTheRootOnly", gather_gives_the_parts_to_the_root_only},
        {"ScatterGivesEachRankItsPart", scatter_gives_each_rank_its_part},
        {"AllToAllTransposesParts", all_to_all_transposes_parts},
        {"SumsAreMadeInAscendingRankOrderElementByElement",
         sums_are_made_in_ascending_rank_order_element_by_element},
        {"MinimaAndMaximaAreThoseOfAllRanks", minima_and_maxima_are_those_of_all_ranks},
        {"ObjectsComeInRankOrder", objects_come_in_rank_order},
        {"BytesGoAroundARingFromPointToPoint", bytes_go_around_a_ring_from_point_to_point},
        {"GroupsOfOneColorTalkAmongThemselves", groups_of_one_color_talk_among_themselves},
        {"MeshAxesAreGroupsOfRanksThatDifferInOneCoordinate",
         mesh_axes_are_groups_of_ranks_that_differ_in_one_coordinate},
        {"ADupIsAnIndependentChannelOfTheSameRanks",
         a_dup_is_an_independent_channel_of_the_same_ranks},
    };
}

std::string story_of_collectives(Communicator& world) {
    RollingDigest digest;
    const auto even = world.split(world.rank() % 2);
    const auto background = world.dup();
    for (int round = 0; round < 5; ++round) {
        for (const Bytes& part : world.all_gather(pattern(world.rank(), round, 3000))) {
            digest.add(std::span(part));
        }
        std::vector<double> values = numbers<double>(world.rank() + round, 3000);
        background->all_reduce(std::span(values), ReduceOp::sum);
        even->all_reduce(std::span(values), ReduceOp::max);
        digest.add(std::as_bytes(std::span(values)));
    }
    return digest.short_hex();
}

}  // namespace swaplab::sim
