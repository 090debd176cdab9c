#include "inspect_fixture.hpp"
#include "json_value.hpp"

#include <algorithm>

namespace swaplab::harness {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(InspectDamage, AMissingFileIsNamed) {
    Memory memory;
    memory.add("ranks2_shard0").storage().remove("ranks2_shard0/__1_0.distcp");
    const InspectReport report = memory.report("ranks2_shard0");
    EXPECT_THAT(codes(report), ElementsAre("missing-file"));
    EXPECT_EQ(report.findings[0].file, "__1_0.distcp");
    EXPECT_THAT(memory.text(of("ranks2_shard0")), HasSubstr("__1_0.distcp is not there"));
}

TEST(InspectDamage, OneByteLessIsATruncatedFile) {
    Memory memory;
    memory.add("ranks2_shard0").bytes("ranks2_shard0/__1_0.distcp").pop_back();
    const InspectReport report = memory.report("ranks2_shard0");
    EXPECT_THAT(codes(report), ElementsAre("truncated-file"));
    EXPECT_EQ(report.findings.size(), 1U);
}

TEST(InspectDamage, DataFilesWithoutMetadataAreAnUnfinishedSave) {
    Memory memory;
    memory.add("v2_w2_even").storage().remove("v2_w2_even/.metadata");
    EXPECT_THAT(memory.text(of("v2_w2_even")),
                HasSubstr("finding  unfinished-save: no .metadata beside 2 data files"));
    EXPECT_EQ(memory.exit(), ExitCode::failed);
}

TEST(InspectDamage, ACutMetadataFileIsBadMetadata) {
    Memory memory;
    auto& bytes = memory.add("v2_w2_even").bytes("v2_w2_even/.metadata");
    bytes.resize(bytes.size() / 2);
    EXPECT_THAT(memory.text(of("v2_w2_even")), HasSubstr("finding  bad-metadata: "));
    EXPECT_EQ(memory.exit(), ExitCode::failed);
}

TEST(InspectDamage, SwappedFilesOfTwoRanksAreFound) {
    Memory memory;
    memory.add("ranks2_shard0")
        .storage()
        .exchange("ranks2_shard0/__0_0.distcp", "ranks2_shard0/__1_0.distcp");
    EXPECT_EQ(memory.report("ranks2_shard0").exit_code(), ExitCode::failed);
}

TEST(InspectDamage, AMissingDirectoryAndAnEmptyOneAreStorageErrors) {
    Memory memory;
    memory.storage().make_directory("empty");
    EXPECT_THROW((void)memory.report("empty"), StorageError);
    EXPECT_THROW((void)memory.report("nowhere"), StorageError);
}

/// Applies one operation of damage.json to the files in `base`.
void apply(Memory& memory, const std::string& base, const oracle::Value& op) {
    using oracle::at;
    using oracle::integer;
    const auto path = [&](std::string_view key) { return base + "/" + oracle::text(at(op, key)); };
    const std::string& what = oracle::text(at(op, "op"));
    if (what == "delete") {
        memory.storage().remove(path("file"));
    } else if (what == "swap") {
        memory.storage().exchange(path("a"), path("b"));
    } else if (what == "copy") {
        const std::vector<std::byte> bytes = memory.bytes(path("from"));
        memory.put(path("to"), bytes);
    } else if (what == "copy_from") {
        memory.put(path("file"), read_file(reference_path(oracle::text(at(op, "base"))) /
                                           oracle::text(at(op, "file"))));
    } else {
        std::vector<std::byte>& bytes = memory.bytes(path("file"));
        const auto place = [&](std::string_view key) {
            return bytes.begin() + integer(at(op, key));
        };
        if (what == "flip") {
            *place("pos") ^= static_cast<std::byte>(integer(at(op, "xor")));
        } else if (what == "zero") {
            std::fill_n(place("pos"), integer(at(op, "n")), std::byte{0});
        } else if (what == "truncate") {
            bytes.resize(static_cast<std::size_t>(integer(at(op, "size"))));
        } else if (what == "move_range") {
            const std::vector<std::byte> moved(place("src"), place("src") + integer(at(op, "n")));
            std::copy(moved.begin(), moved.end(), place("dst"));
        } else {
            ASSERT_EQ(what, "append");
            bytes.resize(bytes.size() + oracle::text(at(op, "hex")).size() / 2);
        }
    }
}

const std::vector<oracle::Value>& damage_entries() {
    static const oracle::Value table = [] {
        const auto bytes = read_file(std::filesystem::path(SWAPLAB_TEST_DATA) / "dcp/damage.json");
        return oracle::parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }();
    return oracle::items(oracle::at(table, "entries"));
}

/// One operation of the table on a fresh copy of its base.
void damage(Memory& memory, const oracle::Value& entry) {
    const std::string& base = oracle::text(oracle::at(entry, "base"));
    memory.add(base);
    for (const oracle::Value& op : oracle::items(oracle::at(entry, "ops"))) {
        apply(memory, base, op);
    }
}

TEST(InspectDamage, WhateverMakesPytorchRaiseIsFound) {
    int raising = 0;
    std::vector<std::string> missed;
    for (const oracle::Value& entry : damage_entries()) {
        Memory memory;
        damage(memory, entry);
        const std::string& base = oracle::text(oracle::at(entry, "base"));
        const ExitCode code = memory.report(base).exit_code();
        if (oracle::text(oracle::at(oracle::at(entry, "result"), "outcome")) == "raises") {
            ++raising;
            if (code != ExitCode::failed) {
                missed.push_back(oracle::text(oracle::at(entry, "note")));
            }
        }
    }
    EXPECT_EQ(raising, 53);
    EXPECT_THAT(missed, IsEmpty());
}

TEST(InspectDamage, AFileCutOffSaysHowManyTensorsPytorchOverwritesFirst) {
    int compared = 0;
    for (const oracle::Value& entry : damage_entries()) {
        Memory memory;
        damage(memory, entry);
        const std::string& base = oracle::text(oracle::at(entry, "base"));
        const InspectReport report = memory.report(base);
        const std::set<std::string> found = codes(report);
        if (found != std::set<std::string>{"truncated-file"} &&
            found != std::set<std::string>{"missing-file"}) {
            continue;
        }
        const oracle::Value& result = oracle::at(entry, "result");
        EXPECT_THAT(
            memory.text(of(base)),
            HasSubstr("overwritten " +
                      std::to_string(oracle::integer(oracle::at(result, "modified_keys"))) +
                      " of " + std::to_string(oracle::integer(oracle::at(result, "tensors")))))
            << oracle::text(oracle::at(entry, "note"));
        ++compared;
    }
    EXPECT_GE(compared, 10);
}

}  // namespace
}  // namespace swaplab::harness
