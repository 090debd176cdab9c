#include "checks.hpp"

#include "swaplab/optim/sharding.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

namespace swaplab::oracle {
namespace {

using optim::Placement;

struct Case {
    Shape shape;
    Shape mesh;
    std::vector<Placement> placements;
};

/// Empty when a placement is of no kind that exists here.
std::optional<Case> read_case(const Value& row) {
    Case result{shape(at(row, 0)), shape(at(row, 1)), {}};
    for (const std::string& word : texts(at(row, 2))) {
        const auto placement = optim::placement_from_text(word);
        if (!placement) {
            return std::nullopt;
        }
        result.placements.push_back(*placement);
    }
    return result;
}

/// What is different about the answer for one rank, or nothing.
std::string compare_rank(const Case& one, int rank, const Shape& expected) {
    const auto coordinate = optim::mesh_coordinate(one.mesh, rank);
    if (!coordinate) {
        return fmt::format("rank {} is outside of the mesh", rank);
    }
    const optim::Box box = optim::local_box(one.shape, one.mesh, one.placements, *coordinate);
    Shape found = box.sizes;
    found.insert(found.end(), box.offsets.begin(), box.offsets.end());
    return found == expected ? ""
                             : fmt::format("rank {}: expected {}, found {}", rank,
                                           optim::to_string(expected), optim::to_string(found));
}

bool refuses(const Case& one) {
    const std::int64_t ranks = optim::numel(one.mesh);
    try {
        for (int rank = 0; rank < ranks; ++rank) {
            (void)optim::local_box(one.shape, one.mesh, one.placements,
                                   optim::mesh_coordinate(one.mesh, rank).value());
        }
    } catch (const sim::ArgumentError&) {
        return true;
    }
    return false;
}

void check_case(const Value& row, Tally& tally) {
    const std::string name = optim::repr(row).substr(0, 60);
    const Value& answer = at(row, 3);
    const auto one = read_case(row);
    const auto rows = is_text(answer) ? 1 : static_cast<std::int64_t>(items(answer).size());
    if (!one) {
        tally.unsupported("unknown placement", rows);
        return;
    }
    if (is_text(answer)) {
        tally.row(name, refuses(*one) ? "" : "PyTorch raises " + text(answer));
        return;
    }
    for (int rank = 0; rank < rows; ++rank) {
        try {
            tally.row(name, compare_rank(*one, rank, shape(at(answer, std::size_t(rank)))));
        } catch (const sim::ArgumentError& error) {
            tally.differ(name + ": refused: " + error.what());
        }
    }
}

}  // namespace

void check_geometry(const Value& file, Tally& tally) {
    const std::string& version = text(at(file, "torch"));
    for (const Value& row : items(at(file, "table"))) {
        if (version.starts_with("2.8.")) {
            check_case(row, tally);
        } else {
            tally.unsupported("geometry of torch " + version,
                              is_text(at(row, 3)) ? 1 : std::int64_t(items(at(row, 3)).size()));
        }
    }
}

void check_other_geometry(const Value& file, Tally& tally) {
    for (const auto& [version, rows] : members(at(file, "torch"))) {
        for (const Value& row : items(rows)) {
            if (text(version).starts_with("2.8.")) {
                check_case(row, tally);
            } else {
                tally.unsupported("geometry of torch " + text(version),
                                  is_text(at(row, 3)) ? 1 : std::int64_t(items(at(row, 3)).size()));
            }
        }
    }
}

}  // namespace swaplab::oracle
