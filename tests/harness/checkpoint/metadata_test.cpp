/// .metadata in the encodings of other Pythons, and what is refused in it.

#include "checkpoint/metadata_codec.hpp"
#include "checkpoint/pickle_opcode.hpp"
#include "checkpoint/pickle_writer.hpp"

#include "swaplab/harness/checkpoint.hpp"

#include <gtest/gtest.h>

namespace swaplab::tests {
namespace {

using harness::FormatError;
using harness::Metadata;
using harness::PickleWriter;
namespace op = harness::opcode;

constexpr std::string_view module = "torch.distributed.checkpoint.metadata";

/// How the parts that differ between writers are written.
struct Variant {
    std::function<void(PickleWriter&)> memory_format = [](PickleWriter& pickle) {
        pickle.global(module, "_MEM_FORMAT_ENCODING");
        pickle.integer(0);
        pickle.op(op::tuple1);
        pickle.op(op::reduce);
    };
    std::function<void(PickleWriter&)> checkpoint_id = [](PickleWriter& p) { p.text("runs/x"); };
    std::int64_t rows = 4;
    std::int64_t chunk_offset = 0;
    std::string file = "__0_0.distcp";
};

void begin(PickleWriter& pickle, std::string_view in, std::string_view name) {
    pickle.global(in, name);
    pickle.op(op::empty_tuple);
    pickle.op(op::newobj);
    pickle.op(op::empty_dict);
    pickle.op(op::mark);
}

void end(PickleWriter& pickle) {
    pickle.op(op::setitems);
    pickle.op(op::build);
}

void size(PickleWriter& pickle, std::int64_t rows) {
    pickle.global("torch", "Size");
    pickle.integer(rows);
    pickle.op(op::tuple1);
    pickle.op(op::tuple1);
    pickle.op(op::reduce);
}

/// One tensor `w` [rows] in one chunk.
std::string write(const Variant& variant) {
    PickleWriter pickle(4);
    begin(pickle, module, "Metadata");
    pickle.text("state_dict_metadata");
    pickle.op(op::empty_dict);
    pickle.text("w");
    begin(pickle, module, "TensorStorageMetadata");
    pickle.text("properties");
    pickle.global(module, "TensorProperties");
    pickle.op(op::empty_tuple);
    pickle.op(op::newobj);
    pickle.op(op::mark);
    pickle.global("torch", "float32");
    pickle.global("torch.serialization", "_get_layout");
    pickle.text("torch.strided");
    pickle.op(op::tuple1);
    pickle.op(op::reduce);
    pickle.boolean(false);
    variant.memory_format(pickle);
    pickle.boolean(true);
    pickle.op(op::tuple);
    pickle.op(op::build);
    pickle.text("size");
    size(pickle, variant.rows);
    pickle.text("chunks");
    pickle.op(op::empty_list);
    begin(pickle, module, "ChunkStorageMetadata");
    pickle.text("offsets");
    size(pickle, variant.chunk_offset);
    pickle.text("sizes");
    size(pickle, variant.rows);
    end(pickle);
    pickle.op(op::append);
    end(pickle);
    pickle.op(op::setitem);
    pickle.text("storage_data");
    pickle.op(op::empty_dict);
    begin(pickle, module, "MetadataIndex");
    pickle.text("fqn");
    pickle.text("w");
    pickle.text("offset");
    size(pickle, variant.chunk_offset);
    end(pickle);
    begin(pickle, "torch.distributed.checkpoint.filesystem", "_StorageInfo");
    pickle.text("relative_path");
    pickle.text(variant.file);
    pickle.text("offset");
    pickle.integer(7);
    pickle.text("length");
    pickle.integer(1577);
    end(pickle);
    pickle.op(op::setitem);
    pickle.text("storage_meta");
    begin(pickle, module, "StorageMeta");
    pickle.text("checkpoint_id");
    variant.checkpoint_id(pickle);
    end(pickle);
    end(pickle);
    return std::move(pickle).finish();
}

Metadata decode(const std::string& bytes) {
    return harness::decode_metadata(std::as_bytes(std::span(bytes)));
}

std::string refusal(const Variant& variant) {
    try {
        static_cast<void>(decode(write(variant)));
    } catch (const FormatError& error) {
        return error.found();
    }
    return "nothing";
}

TEST(MetadataFile, OptionalPartsMayBeAbsent) {
    const Metadata metadata = decode(write({}));
    ASSERT_EQ(metadata.entries.size(), 1U);
    const harness::TensorEntry& tensor = *metadata.entries[0].tensor();
    EXPECT_EQ(metadata.entries[0].key, "w");
    EXPECT_TRUE(metadata.entries[0].path.empty());
    EXPECT_EQ(tensor.global_shape, harness::Shape{4});
    EXPECT_TRUE(tensor.pin_memory);
    EXPECT_EQ(tensor.chunks.at(0).stored, (harness::StoredItem{"__0_0.distcp", 7, 1577}));
    EXPECT_FALSE(tensor.chunks[0].index_hint.has_value());
    EXPECT_EQ(metadata.checkpoint_id, "runs/x");
    EXPECT_FALSE(metadata.version.has_value());
}

TEST(MetadataFile, BothEncodingsOfTheMemoryFormatAreRead) {
    Variant by_name;
    by_name.memory_format = [](PickleWriter& pickle) {
        pickle.global("builtins", "getattr");
        pickle.global(module, "_MEM_FORMAT_ENCODING");
        pickle.text("TORCH_CHANNELS_LAST");
        pickle.op(op::tuple2);
        pickle.op(op::reduce);
    };
    EXPECT_EQ(decode(write(by_name)).entries[0].tensor()->memory_format, "channels_last");
    EXPECT_EQ(decode(write({})).entries[0].tensor()->memory_format, "contiguous_format");
    by_name.memory_format = [](PickleWriter& pickle) {
        pickle.global("builtins", "getattr");
        pickle.global("torch", "Size");
        pickle.text("__init__");
        pickle.op(op::tuple2);
        pickle.op(op::reduce);
    };
    EXPECT_EQ(refusal(by_name), "a memory format that is not known");
}

TEST(MetadataFile, EveryEncodingOfTheCheckpointIdIsRead) {
    Variant variant;
    variant.checkpoint_id = [](PickleWriter& pickle) {
        pickle.global("pathlib", "PosixPath");
        pickle.text("/");
        pickle.text("runs");
        pickle.text("x");
        pickle.op(op::tuple3);
        pickle.op(op::reduce);
    };
    EXPECT_EQ(decode(write(variant)).checkpoint_id, "/runs/x");
    variant.checkpoint_id = [](PickleWriter& pickle) {
        pickle.global("pathlib._local", "PosixPath");
        pickle.text("/runs/x");
        pickle.op(op::tuple1);
        pickle.op(op::reduce);
    };
    EXPECT_EQ(decode(write(variant)).checkpoint_id, "/runs/x");
    variant.checkpoint_id = [](PickleWriter& pickle) { pickle.none(); };
    EXPECT_EQ(decode(write(variant)).checkpoint_id, "");
}

TEST(MetadataFile, AForeignClassIsRefusedByNameAndPlace) {
    Variant variant;
    variant.checkpoint_id = [](PickleWriter& pickle) {
        pickle.global("posix", "system");
        pickle.text("rm -rf /");
        pickle.op(op::tuple1);
        pickle.op(op::reduce);
    };
    const std::string bytes = write(variant);
    try {
        static_cast<void>(decode(bytes));
        ADD_FAILURE() << "accepted";
    } catch (const FormatError& error) {
        EXPECT_EQ(error.found(), "class posix.system, which is not opened");
        EXPECT_EQ(bytes.substr(error.position() + 2, 5), "posix");
    }
}

TEST(MetadataFile, NumbersThatMakeNoSenseAreRefused) {
    Variant negative;
    negative.chunk_offset = -1;
    EXPECT_THAT(refusal(negative), testing::HasSubstr("no negative number"));
    Variant huge;
    huge.rows = std::int64_t{1} << 62;
    EXPECT_THAT(refusal(huge), testing::HasSubstr("more bytes than can be counted"));
    Variant far;
    far.chunk_offset = INT64_MAX;
    EXPECT_THAT(refusal(far), testing::HasSubstr("end cannot be counted"));
}

TEST(MetadataFile, AFileOutsideTheDirectoryIsRefused) {
    for (const char* file : {"../other/__0_0.distcp", "/etc/passwd", ""}) {
        Variant variant;
        variant.file = file;
        EXPECT_THAT(refusal(variant), testing::HasSubstr("leaves the checkpoint's directory"));
    }
}

TEST(MetadataFile, AHugeTensorThatNoFileHoldsIsRefusedBeforeItIsAllocated) {
    Variant variant;
    variant.rows = std::int64_t{1} << 50;
    const auto storage = harness::make_memory_storage();
    storage->make_directory("c");
    const std::string metadata = write(variant);
    storage->create("c/.metadata")->append(std::as_bytes(std::span(metadata)));
    storage->create("c/__0_0.distcp")->append(std::vector<std::byte>(2000));
    harness::Checkpoint checkpoint(*storage, "c");
    EXPECT_THROW(static_cast<void>(checkpoint.read_tensor("w")), harness::CheckpointCorrupt);
}

TEST(MetadataFile, ADirectoryWithoutMetadataIsToldFromOneThatIsNoCheckpoint) {
    const auto storage = harness::make_memory_storage();
    storage->make_directory("runs/step-100");
    storage->make_directory("runs/step-200");
    storage->create("runs/step-200/__0_0.distcp");
    const auto kind = [&](const std::string& path) {
        try {
            const harness::Checkpoint checkpoint(*storage, path);
        } catch (const sim::Error& error) {
            return std::string(sim::name_of(error.kind())) + ": " + error.message();
        }
        return std::string("opened");
    };
    EXPECT_EQ(kind("runs/step-300"),
              "storage: runs/step-300 does not exist; runs/ holds step-100, step-200");
    EXPECT_THAT(kind("runs/step-100"), testing::StartsWith("storage: runs/step-100 is no check"));
    EXPECT_THAT(kind("runs/step-200"), testing::AllOf(testing::StartsWith("corrupt: "),
                                                      testing::HasSubstr("was not finished")));
}

}  // namespace
}  // namespace swaplab::tests
