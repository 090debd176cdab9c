#include "inspect/findings.hpp"

#include "inspect/text.hpp"

#include <cmath>

namespace swaplab::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ChunkReport sound_chunk(Box box, const std::string& file) {
    ChunkReport chunk;
    chunk.chunk.box = std::move(box);
    chunk.chunk.stored = StoredItem{file, 0, 2000};
    chunk.there_bytes = 2000;
    const auto bytes = static_cast<std::uint64_t>(optim::numel(chunk.chunk.box.sizes)) * 4;
    chunk.header = ItemHeader{sim::DType::float32, chunk.chunk.box.sizes, bytes};
    return chunk;
}

TensorReport tensor(const std::string& key, Shape shape, const std::vector<Box>& boxes) {
    TensorReport report;
    report.key = key;
    report.shape = std::move(shape);
    for (std::size_t rank = 0; rank < boxes.size(); ++rank) {
        report.chunks.push_back(
            sound_chunk(boxes[rank], "__" + std::to_string(rank) + "_0.distcp"));
    }
    return report;
}

std::vector<FindingCode> codes_of(const InspectReport& report) {
    std::vector<FindingCode> codes;
    for (const Finding& finding : report.findings) {
        codes.push_back(finding.code);
    }
    return codes;
}

InspectReport report_of(TensorReport one) {
    InspectReport report;
    report.tensors.push_back(std::move(one));
    return report;
}

TEST(InspectFindings, ChunksThatTileAreNoFinding) {
    InspectReport report = report_of(tensor("w", {4, 2}, {{{0, 0}, {2, 2}}, {{2, 0}, {2, 2}}}));
    find_tiling_faults(report);
    find_item_faults(report);
    EXPECT_THAT(report.findings, ::testing::IsEmpty());
}

TEST(InspectFindings, AGapIsLocatedAndCounted) {
    InspectReport report = report_of(tensor("w", {4, 2}, {{{0, 0}, {2, 2}}, {{3, 0}, {1, 2}}}));
    find_tiling_faults(report);
    ASSERT_THAT(codes_of(report), ElementsAre(FindingCode::gap));
    EXPECT_EQ(report.findings[0].elements_lost, 2);
    EXPECT_EQ(report.findings[0].chunk, (Box{{2, 0}, {1, 2}}));
    EXPECT_THAT(findings_text(report, {}), HasSubstr("finding  gap: 2 of 8 elements (25.0 %)"));
}

TEST(InspectFindings, AnOverlapOfRightVolumeIsFoundWithItsGap) {
    InspectReport report = report_of(tensor("w", {4}, {{{0}, {2}}, {{1}, {2}}}));
    find_tiling_faults(report);
    EXPECT_THAT(codes_of(report), ElementsAre(FindingCode::overlap, FindingCode::gap));
}

TEST(InspectFindings, AChunkOutsideOfItsTensorIsFound) {
    InspectReport report = report_of(tensor("w", {4}, {{{0}, {2}}, {{2}, {2}}, {{3}, {2}}}));
    find_tiling_faults(report);
    EXPECT_THAT(codes_of(report), ElementsAre(FindingCode::out_of_bounds));
}

TEST(InspectFindings, ARecordOrAnItemTooSmallForItsChunkIsShort) {
    InspectReport report = report_of(tensor("w", {4}, {{{0}, {4}}}));
    report.tensors[0].chunks[0].header->payload_bytes = 15;
    find_item_faults(report);
    EXPECT_THAT(codes_of(report), ElementsAre(FindingCode::short_item));

    report = report_of(tensor("w", {4}, {{{0}, {4}}}));
    report.tensors[0].chunks[0].chunk.stored->length_bytes = 15;
    report.tensors[0].chunks[0].there_bytes = 15;
    report.tensors[0].chunks[0].header.reset();
    find_item_faults(report);
    EXPECT_THAT(codes_of(report), ElementsAre(FindingCode::short_item));
}

TEST(InspectFindings, AnItemOfAnotherDtypeOrShapeIsBadMetadata) {
    InspectReport report = report_of(tensor("w", {4}, {{{0}, {4}}}));
    report.tensors[0].chunks[0].header->dtype = sim::DType::bfloat16;
    find_item_faults(report);
    EXPECT_THAT(codes_of(report), ElementsAre(FindingCode::bad_metadata));
    EXPECT_THAT(findings_text(report, {}), HasSubstr("says fp32, the item holds bf16"));

    report = report_of(tensor("w", {4}, {{{0}, {4}}}));
    report.tensors[0].chunks[0].header->stored_shape = {5};
    find_item_faults(report);
    EXPECT_THAT(codes_of(report), ElementsAre(FindingCode::bad_metadata));
}

TEST(InspectFindings, AChunkWithoutAnItemIsBadMetadata) {
    InspectReport report = report_of(tensor("w", {4}, {{{0}, {4}}}));
    report.tensors[0].chunks[0].chunk.stored.reset();
    find_item_faults(report);
    EXPECT_THAT(codes_of(report), ElementsAre(FindingCode::bad_metadata));
}

ObjectReport foreign_object(const std::string& key) {
    ObjectReport object;
    object.key = key;
    object.stored = StoredItem{"__0_0.distcp", 0, 100};
    object.there_bytes = 100;
    object.value = optim::Tuple{{optim::Opaque{"decimal.Decimal", 67}}};
    return object;
}

TEST(InspectFindings, AForeignClassIsANoteAndInAParameterGroupAFinding) {
    InspectReport report;
    report.objects = {foreign_object("extra.when"), foreign_object("optimizer.param_groups.0.lr")};
    find_item_faults(report);
    add_notes(report);
    ASSERT_THAT(codes_of(report), ElementsAre(FindingCode::unreadable_item));
    EXPECT_EQ(report.findings[0].key, "optimizer.param_groups.0.lr");
    EXPECT_THAT(report.notes, ::testing::Contains(HasSubstr(
                                  "2 of 2 objects hold classes that are not opened; nothing of "
                                  "them was executed: decimal.Decimal")));
}

InspectReport judged(const std::vector<StoredSteps>& steps) {
    InspectReport report;
    judge_steps(steps, report);
    return report;
}

TEST(InspectFindings, StepsThatNoTrainingReachesAreImpossible) {
    for (const double step : {-1.0, 2.5, 16777217.0, std::nan(""), HUGE_VAL}) {
        const InspectReport report = judged({{"optimizer.state.a.step", {}, {step}}});
        EXPECT_THAT(codes_of(report), ElementsAre(FindingCode::impossible_step)) << step;
        EXPECT_THAT(findings_text(report, {}), HasSubstr("finding  impossible-step: 1 step is"));
    }
    EXPECT_THAT(judged({{"a", {}, {0}}, {"b", {}, {0}}}).findings, ::testing::IsEmpty());
    EXPECT_THAT(judged({{"a", {}, {16777216}}}).findings, ::testing::IsEmpty());
}

TEST(InspectFindings, OneParameterAtTwoStepsDisagreesTwoParametersAreANote) {
    EXPECT_THAT(codes_of(judged({{"a", {2}, {3, 4}}})),
                ElementsAre(FindingCode::step_disagreement));
    const InspectReport report = judged({{"a", {}, {3}}, {"b", {}, {4}}});
    EXPECT_THAT(report.findings, ::testing::IsEmpty());
    EXPECT_THAT(report.notes, ElementsAre(HasSubstr("different steps: 3 (a) to 4 (b)")));
}

/// Two parameters over `ranks` files and a moment of the first that `writer` wrote.
InspectReport with_moment(const std::vector<Box>& parameter, const Shape& global_shape,
                          const Shape& saved, int writer, int ranks) {
    InspectReport report;
    report.tensors.push_back(tensor("model.a", global_shape, parameter));
    report.tensors[0].role = Role::parameter;
    TensorReport moment;
    moment.key = "optimizer.state.a.exp_avg";
    moment.role = Role::moment;
    moment.fqn = "a";
    moment.moment = "exp_avg";
    moment.parameter = "model.a";
    moment.shape = saved;
    moment.chunks = {
        sound_chunk({Shape(saved.size(), 0), saved}, "__" + std::to_string(writer) + "_0.distcp")};
    report.tensors.push_back(moment);
    for (int rank = 0; rank < ranks; ++rank) {
        report.ranks.push_back(rank);
    }
    return report;
}

TEST(InspectFindings, OwnersAreNamedWhereFileNamesLeaveOneAnswer) {
    InspectReport report = with_moment({{{0}, {2}}, {{2}, {2}}}, {4}, {2}, 1, 2);
    find_lost_shards(report, nullptr);
    ASSERT_THAT(codes_of(report), ElementsAre(FindingCode::lost_shards));
    EXPECT_EQ(report.findings[0].kept[0].box, (Box{{2}, {2}}));
    ASSERT_TRUE(report.findings[0].lost);
    EXPECT_EQ(report.findings[0].lost->at(0).rank, 0);
}

TEST(InspectFindings, WithReplicasOwnersAreNeverGuessed) {
    // Four ranks, two boxes: ranks 2 and 3 may hold replicas of what ranks 0 and 1 stored.
    InspectReport report = with_moment({{{0}, {2}}, {{2}, {2}}}, {4}, {2}, 1, 4);
    find_lost_shards(report, nullptr);
    ASSERT_EQ(report.findings.size(), 1U);
    EXPECT_EQ(report.findings[0].kept[0].rank, 1);
    EXPECT_EQ(report.findings[0].kept[0].box, std::nullopt);
    EXPECT_EQ(report.findings[0].lost, std::nullopt);
}

TEST(InspectFindings, AWriterWithoutABoxOfThatShapeLeavesTheRangeUnknown) {
    InspectReport report = with_moment({{{0}, {3}}, {{3}, {1}}}, {4}, {2}, 1, 2);
    find_lost_shards(report, nullptr);
    ASSERT_EQ(report.findings.size(), 1U);
    EXPECT_EQ(report.findings[0].kept[0].box, std::nullopt);
    EXPECT_EQ(report.findings[0].lost, std::nullopt);
}

TEST(InspectFindings, AMomentOfAnotherShapeThatIsNotSmallerContradictsItsParameter) {
    InspectReport report = with_moment({{{0, 0}, {2, 3}}}, {2, 3}, {3, 2}, 0, 1);
    find_lost_shards(report, nullptr);
    EXPECT_THAT(codes_of(report), ElementsAre(FindingCode::bad_metadata));
}

TEST(InspectFindings, AFindingBeatsCannotTell) {
    InspectReport report;
    report.unjudged.push_back({"optimizer.state.0.exp_avg", "0", {2}});
    EXPECT_EQ(report.exit_code(), ExitCode::nothing);
    report.findings.emplace_back();
    EXPECT_EQ(report.exit_code(), ExitCode::failed);
}

}  // namespace
}  // namespace swaplab::harness
