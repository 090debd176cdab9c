/// Mutated bytes are refused or read; they never crash, hang or allocate without bound.

#include "checkpoint/item_reader.hpp"
#include "checkpoint/metadata_codec.hpp"
#include "checkpoint/zip_writer.hpp"
#include "support/copy_tree.hpp"

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/sim/random.hpp"

#include <gtest/gtest.h>

namespace swaplab::tests {
namespace {

using harness::Checkpoint;

std::string checkpoint_path(const std::string& name) {
    return std::string(SWAPLAB_TEST_DATA "/dcp/checkpoints/") + name + "/ckpt";
}

/// One to four edits: other bits, other bytes, extreme values, cuts, repeats.
void mutate(std::vector<std::byte>& bytes, sim::Rng& rng) {
    for (std::uint64_t edits = 1 + rng.below(4); edits > 0 && !bytes.empty(); --edits) {
        const std::size_t at = rng.below(bytes.size());
        switch (rng.below(6)) {
            case 0:
                bytes[at] ^= static_cast<std::byte>(1U << rng.below(8));
                break;
            case 1:
                bytes[at] = static_cast<std::byte>(rng.below(256));
                break;
            case 2:
                bytes[at] = std::byte{0xff};
                break;
            case 3:
                bytes.resize(at);
                break;
            case 4: {
                const std::size_t count = std::min<std::size_t>(rng.below(64), bytes.size() - at);
                const std::vector<std::byte> piece(
                    bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    bytes.begin() + static_cast<std::ptrdiff_t>(at + count));
                const auto place =
                    bytes.begin() + static_cast<std::ptrdiff_t>(rng.below(bytes.size()));
                bytes.insert(place, piece.begin(), piece.end());
                break;
            }
            default:
                for (std::size_t i = at; i < std::min(bytes.size(), at + 8); ++i) {
                    bytes[i] = std::byte{0x7f};
                }
        }
    }
}

/// Reads everything there is; how many keys could be read.
std::size_t read_keys(harness::Storage& storage) {
    std::size_t readable = 0;
    Checkpoint checkpoint(storage, "c");
    for (const harness::MetadataEntry& entry : checkpoint.metadata().entries) {
        try {
            if (entry.tensor() != nullptr) {
                static_cast<void>(checkpoint.read_tensor(entry.key));
            } else {
                static_cast<void>(checkpoint.read_value(entry.key));
            }
            ++readable;
        } catch (const harness::CheckpointCorrupt& error) {
            EXPECT_FALSE(std::string(error.what()).empty());
        } catch (const harness::StorageError& error) {
            EXPECT_FALSE(error.fields().empty());
        }
    }
    return readable;
}

TEST(Fuzz, MutatedMetadataIsReadOrRefused) {
    std::size_t refused = 0;
    for (const char* name : {"ranks2_shard0", "single_tensor_kinds", "ranks4_hsdp_2x2",
                             "one_process_adamw_torch2.15"}) {
        const auto memory = copy_to_memory(checkpoint_path(name), "c");
        const std::vector<std::byte> original = memory->file_bytes("c/.metadata");
        sim::Rng rng(sim::hash_text(name));
        for (int i = 0; i < 500; ++i) {
            memory->file_bytes("c/.metadata") = original;
            mutate(memory->file_bytes("c/.metadata"), rng);
            try {
                read_keys(*memory);
            } catch (const harness::CheckpointCorrupt& error) {
                EXPECT_FALSE(error.fields().empty());
                ++refused;
            }
        }
    }
    EXPECT_GT(refused, 500U);
}

TEST(Fuzz, MutatedItemsAreReadOrRefused) {
    std::size_t unreadable = 0;
    for (const char* name : {"single_python_objects", "single_tensor_kinds", "single_empty_tensor",
                             "one_process_adamw_torch2.4"}) {
        const auto memory = copy_to_memory(checkpoint_path(name), "c");
        const std::string file = "c/__0_0.distcp";
        const std::vector<std::byte> original = memory->file_bytes(file);
        const std::size_t all = read_keys(*memory);
        sim::Rng rng(sim::hash_text(name));
        for (int i = 0; i < 250; ++i) {
            memory->file_bytes(file) = original;
            mutate(memory->file_bytes(file), rng);
            unreadable += all - read_keys(*memory);
        }
    }
    EXPECT_GT(unreadable, 1000U);
}

TEST(Fuzz, ArbitraryBytesAreNoMetadata) {
    sim::Rng rng(3);
    for (int i = 0; i < 3000; ++i) {
        std::vector<std::byte> bytes(rng.below(200));
        for (std::byte& byte : bytes) {
            byte = static_cast<std::byte>(rng.below(256));
        }
        EXPECT_THROW(static_cast<void>(harness::decode_metadata(bytes)), harness::FormatError);
    }
}

TEST(Fuzz, APickleThatUnfoldsIsRefused) {
    // x = []; x = [x, x]; x = [x, x]; ... : small as a pickle, 2^40 lists as a value
    std::string pickle = "\x80\x02]q";
    pickle += '\0';
    for (char slot = 1; slot < 40; ++slot) {
        const char previous = static_cast<char>(slot - 1);
        pickle += std::string("](h") + previous + "h" + previous + "eq" + slot;
    }
    pickle += '.';
    const auto memory = harness::make_memory_storage();
    const auto file = memory->create("item");
    harness::BlockWriter out(*file, 4096);
    harness::ZipWriter zip(out);
    zip.record("data.pkl", pickle);
    zip.finish("");
    out.flush();
    const auto written = memory->open("item");
    harness::ZipArchive archive(*written, 0, written->size());
    EXPECT_THROW(static_cast<void>(harness::read_stored_value(archive)), harness::FormatError);
}

}  // namespace
}  // namespace swaplab::tests
