/// Items: values of every kind, foreign classes, sizes, archives by other tools, large records.

#include "checkpoint/item_reader.hpp"
#include "checkpoint/item_writer.hpp"
#include "checkpoint/pickle_reader.hpp"
#include "checkpoint/zip_format.hpp"
#include "checkpoint/zip_writer.hpp"

#include "swaplab/harness/checkpoint.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace swaplab::tests {
namespace {

using harness::BlockWriter;
using harness::FormatError;
using harness::ZipArchive;
using optim::Value;

/// A file in memory that is written with `work` and then read back.
template <class Write>
std::unique_ptr<harness::ReadableFile> written(harness::MemoryStorage& storage, Write work) {
    const auto file = storage.create("item");
    BlockWriter out(*file, 512);
    work(out);
    out.flush();
    return storage.open("item");
}

Value round_trip(const Value& value) {
    const auto storage = harness::make_memory_storage();
    const auto file =
        written(*storage, [&](BlockWriter& out) { harness::write_value_item(out, value); });
    ZipArchive archive(*file, 0, file->size());
    return harness::read_stored_value(archive);
}

Value value_of_pickle(const std::string& pickle) {
    const auto storage = harness::make_memory_storage();
    const auto file = written(*storage, [&](BlockWriter& out) {
        harness::ZipWriter zip(out);
        zip.record("data.pkl", pickle);
        zip.finish("");
    });
    ZipArchive archive(*file, 0, file->size());
    return harness::read_stored_value(archive);
}

TEST(Items, ValuesOfEveryKindComeBackAsTheyWere) {
    const optim::Dict dict{{{"a", std::int64_t{1}}, {std::int64_t{2}, optim::Tuple{}}}, false};
    optim::List thousand_and_one;
    for (std::int64_t i = 0; i < 1001; ++i) {
        thousand_and_one.items.emplace_back(i);
    }
    const std::vector<Value> values{optim::None{},
                                    true,
                                    false,
                                    std::int64_t{0},
                                    std::int64_t{-1},
                                    std::int64_t{255},
                                    std::int64_t{256},
                                    std::int64_t{65536},
                                    std::int64_t{INT32_MIN},
                                    std::int64_t{INT64_MAX},
                                    std::int64_t{INT64_MIN},
                                    optim::BigInt{"9223372036854775808"},
                                    optim::BigInt{"-170141183460469231731687303715884105728"},
                                    optim::BigInt{"-340282366920938463463374607431768211456"},
                                    0.1,
                                    -0.0,
                                    "",
                                    "text",
                                    std::string(300, 'x'),
                                    optim::PyBytes{},
                                    optim::PyBytes{std::string("\0\x7f\x80\xff", 4)},
                                    optim::Tuple{},
                                    optim::Tuple{{std::int64_t{1}, "b", optim::None{}, 2.5}},
                                    optim::List{},
                                    optim::List{{"one"}},
                                    thousand_and_one,
                                    dict,
                                    optim::Dict{dict.items, true}};
    for (const Value& value : values) {
        EXPECT_TRUE(optim::same_value(round_trip(value), value)) << optim::repr(value);
    }
}

TEST(Items, HaveTheSizesOfPytorchsItems) {
    const auto size_of = [](const auto& work) {
        const auto storage = harness::make_memory_storage();
        return written(*storage, work)->size();
    };
    const auto tensor = [](std::int64_t elements) {
        return optim::make_host_tensor(std::vector<float>(static_cast<std::size_t>(elements)),
                                       {elements});
    };
    EXPECT_EQ(size_of([&](BlockWriter& out) { harness::write_value_item(out, optim::None{}); }),
              1261U);
    EXPECT_EQ(size_of([&](BlockWriter& out) { harness::write_tensor_item(out, tensor(0)); }),
              1513U);
    EXPECT_EQ(size_of([&](BlockWriter& out) { harness::write_tensor_item(out, tensor(15)); }),
              1577U);
    EXPECT_EQ(size_of([&](BlockWriter& out) { harness::write_tensor_item(out, tensor(16)); }),
              1641U);
}

TEST(Items, AForeignClassIsNamedWithItsPlaceAndNothingRuns) {
    // numpy._core.multiarray.scalar(...) as protocol 2 writes it, with state and items on top
    const Value value = value_of_pickle(
        "\x80\x02"
        "cnumpy._core.multiarray\nscalar\nK\x01\x85R}b.");
    const auto* opaque = value.get_if<optim::Opaque>();
    ASSERT_NE(opaque, nullptr);
    EXPECT_EQ(opaque->class_name, "numpy._core.multiarray.scalar");
    EXPECT_EQ(opaque->position, 67U);
    const Value list = value_of_pickle("\x80\x02]c__builtin__\nset\n]\x85Ra.");
    ASSERT_EQ(list.get_if<optim::List>()->items.size(), 1U);
    EXPECT_EQ(list.get_if<optim::List>()->items[0].get_if<optim::Opaque>()->class_name,
              "__builtin__.set");
}

TEST(Items, OnlyOneCallIsEverMadeAndOnlyForLatin1) {
    EXPECT_THROW(value_of_pickle("\x80\x02"
                                 "c_codecs\nencode\nX\x01"),
                 FormatError);
    std::string rot13 =
        "\x80\x02"
        "c_codecs\nencode\nX";
    rot13 += std::string("\x01\0\0\0a", 5) + "X" + std::string("\x05\0\0\0rot13", 9) + "\x86R.";
    EXPECT_THROW(value_of_pickle(rot13), FormatError);
}

TEST(Items, BrokenPicklesAreRefusedWithTheirPlace) {
    const auto position_of = [](const std::string& pickle) {
        try {
            static_cast<void>(harness::read_pickle(std::as_bytes(std::span(pickle)), {{}, true}));
        } catch (const FormatError& error) {
            return static_cast<int>(error.position());
        }
        return -1;
    };
    EXPECT_EQ(position_of("\x80\x02N."), -1);
    EXPECT_EQ(position_of("\x80\x02N"), 3);        // no end
    EXPECT_EQ(position_of("\x80\x02\x85."), 2);    // a tuple of nothing
    EXPECT_EQ(position_of("\x80\x02t."), 2);       // no mark
    EXPECT_EQ(position_of("\x80\x02Nh\x07."), 3);  // an empty memo slot
    EXPECT_EQ(position_of("\x80\x02NNb."), 4);     // state for None
    EXPECT_EQ(position_of("\x80\x02NNs."), 4);
    EXPECT_EQ(position_of("\x80\x07N."), 0);  // protocol 7
    EXPECT_EQ(position_of("\x80\x02i."), 2);  // INST, never written by protocol 2
    EXPECT_EQ(position_of(std::string("\x80\x02X\xff\xff\xff\xff", 7)), 7);
}

TEST(Items, RecordsInAnyOrderUnderAnyFolderAreRead) {
    const auto storage = harness::make_memory_storage();
    const auto file = written(*storage, [](BlockWriter& out) {
        harness::ZipWriter zip(out);
        zip.record("byteorder", "little");
        zip.record("data.pkl", "\x80\x02K\x07.");
        zip.finish("");
        out.append(std::string(300, 'z'));  // bytes after the end
    });
    // The writer's folder is archive/; every name is renamed to another of the same length.
    auto& bytes = storage->file_bytes("item");
    const std::string from = "archive/";
    for (auto at = bytes.begin(); at != bytes.end(); ++at) {
        at = std::search(at, bytes.end(), from.begin(), from.end(),
                         [](std::byte a, char b) { return std::to_integer<char>(a) == b; });
        if (at == bytes.end()) {
            break;
        }
        *at = std::byte{0x41};
    }
    ZipArchive archive(*file, 0, file->size());
    EXPECT_TRUE(optim::same_value(harness::read_stored_value(archive), std::int64_t{7}));
}

constexpr std::uint64_t large_bytes = (4ULL << 30U) + 4;

/// Zeros that nobody stores, more than 4 GiB of them.
class ZeroStorage : public optim::TensorStorage {
  public:
    [[nodiscard]] sim::MemoryKind kind() const noexcept override { return sim::MemoryKind::host; }
    [[nodiscard]] std::uint64_t bytes() const noexcept override { return large_bytes; }
    void read(std::uint64_t, std::span<std::byte> out) const override {
        std::memset(out.data(), 0, out.size());
    }
    void write(std::uint64_t, std::span<const std::byte>) override {}
    [[nodiscard]] std::byte* data() const noexcept override { return nullptr; }
};

/// Keeps the pieces that are not all zero.
class SparseFile : public harness::WritableFile, public harness::ReadableFile {
  public:
    void append(std::span<const std::byte> bytes) override {
        const bool is_zero = bytes[0] == std::byte{} &&
                             std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
        if (!is_zero) {
            pieces_[size_].assign(bytes.begin(), bytes.end());
        }
        size_ += bytes.size();
    }
    void sync() override {}
    void close() override {}
    [[nodiscard]] std::uint64_t size() const override { return size_; }
    void read(std::uint64_t offset, std::span<std::byte> out) override {
        std::fill(out.begin(), out.end(), std::byte{0});
        for (const auto& [begin, bytes] : pieces_) {
            const std::uint64_t from = std::max(begin, offset);
            const std::uint64_t to = std::min(begin + bytes.size(), offset + out.size());
            for (std::uint64_t i = from; i < to; ++i) {
                out[i - offset] = bytes[i - begin];
            }
        }
    }

  private:
    std::map<std::uint64_t, std::vector<std::byte>> pieces_;
    std::uint64_t size_ = 0;
};

TEST(Items, ARecordBeyond4GibKeepsItsSize) {
    SparseFile file;
    BlockWriter out(file, 8U << 20U);
    constexpr auto elements = static_cast<std::int64_t>(large_bytes / 4);
    const optim::Tensor tensor(sim::DType::float32, {elements}, std::make_shared<ZeroStorage>());
    const std::uint64_t length = harness::write_tensor_item(out, tensor);
    out.flush();
    EXPECT_EQ(length, file.size());
    ZipArchive archive(file, 0, length);
    const harness::StoredTensor stored = harness::read_stored_tensor(archive);
    EXPECT_EQ(stored.shape, optim::Shape{elements});
    EXPECT_EQ(stored.record_bytes, large_bytes);
    EXPECT_EQ(stored.record_offset % 64, 0U);
    EXPECT_GT(archive.require("version").header_offset, 0xffffffffULL);
}

}  // namespace
}  // namespace swaplab::tests
