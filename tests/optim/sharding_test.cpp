#include "swaplab/optim/sharding.hpp"

#include "swaplab/sim/error.hpp"

#include <nlohmann/json.hpp>

#include <fstream>

namespace swaplab::optim {
namespace {

using nlohmann::json;

std::vector<Placement> placements_of(const json& texts) {
    std::vector<Placement> placements;
    for (const json& text : texts) {
        placements.push_back(placement_from_text(text.get<std::string>()).value());
    }
    return placements;
}

Shape joined(const Box& box) {
    Shape row = box.sizes;
    row.insert(row.end(), box.offsets.begin(), box.offsets.end());
    return row;
}

TEST(Geometry, EveryRowOfPyTorchsTableIsReproduced) {
    std::ifstream file(SWAPLAB_TEST_DATA "/dcp/geometry.json");
    const json data = json::parse(file);
    std::size_t rows = 0;
    std::size_t raising = 0;
    for (const json& entry : data.at("table")) {
        const auto shape = entry[0].get<Shape>();
        const auto mesh = entry[1].get<Shape>();
        const auto placements = placements_of(entry[2]);
        SCOPED_TRACE(entry[0].dump() + entry[1].dump() + entry[2].dump());
        if (entry[3].is_string()) {
            ++raising;
            EXPECT_THROW(
                static_cast<void>(local_box(shape, mesh, placements, *mesh_coordinate(mesh, 0))),
                sim::ArgumentError);
            continue;
        }
        for (int rank = 0; rank < static_cast<int>(entry[3].size()); ++rank) {
            ++rows;
            const ShardSpec spec{shape, mesh, placements, {}};
            EXPECT_EQ(joined(spec.box_of(rank).value()),
                      entry[3][static_cast<std::size_t>(rank)].get<Shape>());
        }
    }
    EXPECT_EQ(rows + raising, data.at("rows").get<std::size_t>());
    EXPECT_EQ(raising, data.at("raising_cases").get<std::size_t>());
}

TEST(Geometry, ARankOutsideTheMeshHoldsNothing) {
    const ShardSpec spec{{5}, {2}, {Placement::shard(0)}, {3, 1}};
    EXPECT_EQ(spec.box_of(0), std::nullopt);
    EXPECT_EQ(spec.box_of(3), (Box{{0}, {3}}));
    EXPECT_EQ(spec.box_of(1), (Box{{3}, {2}}));
    EXPECT_EQ(mesh_coordinate({2, 2}, 4), std::nullopt);
    EXPECT_EQ(mesh_coordinate({2, 2}, -1), std::nullopt);
}

TEST(Geometry, NegativeDimsCountBack) {
    EXPECT_EQ(local_box({4, 6}, {3}, {Placement::shard(-1)}, {2}), (Box{{0, 4}, {4, 2}}));
    EXPECT_THROW(static_cast<void>(local_box({4}, {2}, {Placement::shard(-2)}, {0})),
                 sim::ArgumentError);
}

TEST(Geometry, ErrorNamesThePlacements) {
    try {
        static_cast<void>(local_box({4}, {2, 2}, placements_of({"SS0/3", "S0"}), {0, 0}));
        FAIL() << "accepted";
    } catch (const sim::ArgumentError& error) {
        EXPECT_STREQ(error.what(),
                     "split factor 3 is not the 2 ranks that already cut dim 0 in "
                     "[_StridedShard(0, sf=3), Shard(0)]");
    }
}

TEST(Placements, EverySpellingLeadsToTheSamePlacement) {
    const Placement strided{Placement::Kind::strided_shard, 1, 2};
    for (const char* text : {"_StridedShard(1, sf=2)", "_StridedShard(dim=1, split_factor=2)",
                             "_StridedShard(dim=1, sf=2)", "SS1/2"}) {
        EXPECT_EQ(placement_from_text(text), strided) << text;
    }
    for (const char* text : {"Shard(1)", "Shard(dim=1)", "S1"}) {
        EXPECT_EQ(placement_from_text(text), Placement::shard(1)) << text;
    }
    EXPECT_EQ(placement_from_text("S-1"), Placement::shard(-1));
    for (const char* text : {"Replicate()", "Shard(3)", "_StridedShard(0, sf=4)", "Partial(sum)"}) {
        EXPECT_EQ(to_string(placement_from_text(text).value()), text);
    }
    EXPECT_EQ(placement_from_text("R"), Placement::replicate());
    EXPECT_EQ(placement_from_text("P")->kind, Placement::Kind::partial);
}

TEST(Placements, AnythingElseIsRefused) {
    for (const char* text : {"", "S", "S0x", "Shard(0", "Shard()", "SS0", "SS0/0", "SS0/-1",
                             "Replicate", "_StridedShard(0)", "shard(0)", "S 0", "S0,"}) {
        EXPECT_EQ(placement_from_text(text), std::nullopt) << text;
    }
}

TEST(Boxes, IntersectionIsTheCommonPart) {
    EXPECT_EQ(intersect({{0, 0}, {4, 4}}, {{2, 1}, {4, 2}}), (Box{{2, 1}, {2, 2}}));
    EXPECT_EQ(intersect({{0}, {4}}, {{4}, {4}}), std::nullopt);
    EXPECT_EQ(intersect({{0}, {4}}, {{2}, {0}}), std::nullopt);
    EXPECT_EQ(intersect({{}, {}}, {{}, {}}), (Box{}));
}

TEST(Boxes, PrintHalfOpenRanges) {
    EXPECT_EQ(to_string(Box{{6, 0}, {6, 2}}), "[6:12, 0:2]");
    EXPECT_EQ(to_string(Box{}), "[]");
}

TEST(Shapes, OverflowIsRefused) {
    EXPECT_EQ(numel({}), 1);
    EXPECT_EQ(numel({3, 0, 5}), 0);
    EXPECT_THROW(static_cast<void>(numel({std::int64_t{1} << 40, std::int64_t{1} << 40})),
                 sim::ArgumentError);
    EXPECT_THROW(static_cast<void>(numel({-1})), sim::ArgumentError);
}

}  // namespace
}  // namespace swaplab::optim
