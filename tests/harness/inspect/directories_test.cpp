#include "inspect_fixture.hpp"
#include "json_value.hpp"

#include <map>

namespace swaplab::harness {
namespace {

namespace fs = std::filesystem;
using oracle::at;
using oracle::find;
using oracle::flag;

oracle::Value read_expected(const fs::path& path) {
    const auto bytes = read_file(path);
    return oracle::parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

struct Reference {
    std::string name;
    fs::path directory;
    oracle::Value expected;
};

std::vector<Reference> references(const std::string& set) {
    std::vector<Reference> all;
    for (const auto& entry : fs::directory_iterator(fs::path(SWAPLAB_TEST_DATA) / set)) {
        if (entry.is_directory()) {
            const bool inside = fs::exists(entry.path() / "expected.json");
            all.push_back(
                {entry.path().filename().string(), inside ? entry.path() / "ckpt" : entry.path(),
                 read_expected(inside ? entry.path() / "expected.json"
                                      : fs::path(entry.path().string() + ".expected.json"))});
        }
    }
    return all;
}

InspectReport inspect_posix(const fs::path& directory) {
    const auto storage = make_posix_storage();
    return inspect_directory(*storage, directory.string(), nullptr, false);
}

TEST(InspectDirectories, HealthyDcpReferencesHaveNoFindingAndDamagedOnesHave) {
    const auto all = references("dcp/checkpoints");
    EXPECT_EQ(all.size(), 59U);
    int unjudged = 0;
    for (const Reference& reference : all) {
        const InspectReport report = inspect_posix(reference.directory);
        EXPECT_EQ(report.findings.empty(), flag(at(reference.expected, "good"))) << reference.name;
        unjudged += report.unjudged.empty() ? 0 : 1;
    }
    EXPECT_EQ(unjudged, 1) << "single_raw_optimizer_dict alone has integer ids";
}

TEST(InspectDirectories, SwapReferencesAreJudgedByTheirParametersOrNotAtAll) {
    const auto all = references("swap_adamw/checkpoints");
    EXPECT_EQ(all.size(), 27U);
    for (const Reference& reference : all) {
        const ExitCode expected = !flag(at(reference.expected, "with_model")) ? ExitCode::nothing
                                  : flag(at(reference.expected, "complete"))  ? ExitCode::ok
                                                                              : ExitCode::failed;
        EXPECT_EQ(inspect_posix(reference.directory).exit_code(), expected) << reference.name;
    }
}

Shape as_shape(const oracle::Value& value) {
    return oracle::shape(value);
}

/// Whether `finding` names exactly the pieces that the reference says were lost.
bool names_lost_pieces(const Finding& finding, const oracle::Value& pieces) {
    if (!finding.lost || finding.lost->size() != oracle::items(pieces).size()) {
        return false;
    }
    for (std::size_t i = 0; i < finding.lost->size(); ++i) {
        const oracle::Value& piece = at(pieces, i);
        const RankPart& part = finding.lost->at(i);
        if (part.rank != oracle::integer(at(piece, "rank")) ||
            part.box != Box{as_shape(at(piece, "offset")), as_shape(at(piece, "size"))}) {
            return false;
        }
    }
    return true;
}

TEST(InspectDirectories, LostShardsNameTheRightRanksAndRangesOfEveryMoment) {
    int keys = 0;
    for (const Reference& reference : references("swap_adamw/checkpoints")) {
        if (!flag(at(reference.expected, "with_model"))) {
            continue;
        }
        const oracle::Value& lost = at(reference.expected, "lost");
        const InspectReport report = inspect_posix(reference.directory);
        EXPECT_EQ(report.findings.size(), oracle::members(lost).size()) << reference.name;
        for (const Finding& finding : report.findings) {
            const std::string prefix = "optimizer.state.";
            const oracle::Value* pieces = find(lost, finding.key.substr(prefix.size()));
            ASSERT_NE(pieces, nullptr) << reference.name << " " << finding.key;
            EXPECT_TRUE(names_lost_pieces(finding, *pieces))
                << reference.name << " " << finding.key;
            ++keys;
        }
    }
    EXPECT_EQ(keys, 87);
}

TEST(InspectDirectories, TheSurvivorIsTheRankWhoseBitsAreInTheFile) {
    int keys = 0;
    for (const Reference& reference : references("swap_adamw/checkpoints")) {
        const oracle::Value& saved = at(reference.expected, "saved_tensors");
        for (const Finding& finding : inspect_posix(reference.directory).findings) {
            const oracle::Value* ranks = find(at(saved, finding.key), "equals_shard_of_rank");
            ASSERT_NE(ranks, nullptr) << reference.name << " " << finding.key;
            ASSERT_EQ(finding.kept.size(), 1U);
            // Ranks whose shards are empty hold equal bits: any of them may be the writer.
            bool is_one = false;
            for (const oracle::Value& rank : oracle::items(*ranks)) {
                is_one = is_one || oracle::integer(rank) == finding.kept[0].rank;
            }
            EXPECT_TRUE(is_one) << reference.name << " " << finding.key;
            ++keys;
        }
    }
    EXPECT_EQ(keys, 87);
}

TEST(InspectDirectories, DigestsAreThoseThatPytorchsTensorsHave) {
    const auto storage = make_posix_storage();
    int tensors = 0;
    for (const Reference& reference : references("dcp/checkpoints")) {
        std::map<std::string, std::string> digests;
        for (const TensorReport& tensor :
             inspect_directory(*storage, reference.directory.string(), nullptr, true).tensors) {
            digests[tensor.key] = tensor.sha256;
        }
        for (const oracle::Value& item : oracle::items(at(reference.expected, "items"))) {
            if (const oracle::Value* digest = find(item, "sha256")) {
                EXPECT_EQ(digests[oracle::text(at(item, "key"))], oracle::text(*digest))
                    << reference.name;
                ++tensors;
            }
        }
    }
    EXPECT_EQ(tensors, 835);
}

}  // namespace
}  // namespace swaplab::harness
