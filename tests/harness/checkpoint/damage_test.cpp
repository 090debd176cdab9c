/// The damage that PyTorch was tried on (damage.json): what it read wrongly without a word is
/// refused here by name, unless every item is intact in itself.

#include "support/copy_tree.hpp"
#include "support/expected_value.hpp"

#include "swaplab/harness/tensor_reader.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace swaplab::tests {
namespace {

using harness::Checkpoint;

std::string checkpoint_path(const std::string& name) {
    return std::string(SWAPLAB_TEST_DATA "/dcp/checkpoints/") + name + "/ckpt";
}

class Damager {
  public:
    explicit Damager(harness::MemoryStorage& storage) : storage_(storage) {}

    void apply(const Json& op) {
        const std::string kind = op.at("op");
        if (kind == "flip") {
            bytes(op.at("file")).at(op.at("pos")) ^=
                static_cast<std::byte>(op.at("xor").get<int>());
        } else if (kind == "truncate") {
            bytes(op.at("file")).resize(op.at("size"));
        } else if (kind == "delete") {
            storage_.remove(path(op.at("file")));
        } else if (kind == "zero") {
            auto& file = bytes(op.at("file"));
            std::fill_n(file.begin() + op.at("pos").get<std::ptrdiff_t>(), op.at("n").get<int>(),
                        std::byte{0});
        } else if (kind == "swap") {
            std::swap(bytes(op.at("a")), bytes(op.at("b")));
        } else if (kind == "append") {
            append(bytes(op.at("file")), op.at("hex"));
        } else if (kind == "copy") {
            const std::vector<std::byte> copy = bytes(op.at("from"));
            storage_.create(path(op.at("to")))->append(copy);
        } else if (kind == "copy_from") {
            const auto other = copy_to_memory(checkpoint_path(op.at("base")), "c");
            storage_.create(path(op.at("file")))->append(other->file_bytes(path(op.at("file"))));
        } else if (kind == "move_range") {
            auto& file = bytes(op.at("file"));
            const std::vector<std::byte> copy = file;
            std::copy_n(copy.begin() + op.at("src").get<std::ptrdiff_t>(), op.at("n").get<int>(),
                        file.begin() + op.at("dst").get<std::ptrdiff_t>());
        } else {
            FAIL() << "unknown damage " << kind;
        }
    }

  private:
    static std::string path(const std::string& file) { return "c/" + file; }
    std::vector<std::byte>& bytes(const std::string& file) {
        return storage_.file_bytes(path(file));
    }
    static void append(std::vector<std::byte>& file, const std::string& hex) {
        for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
            file.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
        }
    }

    harness::MemoryStorage& storage_;
};

struct Outcome {
    std::vector<std::string> refused;  ///< texts
    std::vector<std::string> wrong;    ///< keys that read to something else without a word
};

/// Reads every key of the undamaged checkpoint from the damaged one and compares.
Outcome read_damaged(harness::Storage& damaged, const std::string& base) {
    const auto posix = harness::make_posix_storage();
    Checkpoint good(*posix, checkpoint_path(base));
    Outcome outcome;
    std::optional<Checkpoint> bad;
    try {
        bad.emplace(damaged, "c");
    } catch (const sim::Error& error) {
        outcome.refused.emplace_back(error.message());
        return outcome;
    }
    for (const harness::MetadataEntry& entry : good.metadata().entries) {
        try {
            const bool same =
                entry.tensor() != nullptr
                    ? good.read_tensor(entry.key) == bad->read_tensor(entry.key)
                    : optim::same_value(good.read_value(entry.key), bad->read_value(entry.key));
            if (!same) {
                outcome.wrong.push_back(entry.key);
            }
        } catch (const sim::Error& error) {
            outcome.refused.emplace_back(error.message());
        }
    }
    return outcome;
}

Json damage_entries() {
    std::ifstream stream(SWAPLAB_TEST_DATA "/dcp/damage.json");
    return Json::parse(stream).at("entries");
}

TEST(Damage, WhatPytorchReadsWronglyInSilenceIsRefused) {
    const Json entries = damage_entries();
    EXPECT_EQ(entries.size(), 79U);
    std::vector<int> silently_wrong;
    for (const Json& entry : entries) {
        const std::string base = entry.at("base");
        const std::string note = entry.at("note");
        const auto storage = copy_to_memory(checkpoint_path(base), "c");
        for (const Json& op : entry.at("ops")) {
            Damager(*storage).apply(op);
        }
        const Outcome outcome = read_damaged(*storage, base);
        if (!outcome.wrong.empty()) {
            silently_wrong.push_back(entry.at("id"));
        }
        if (entry.at("result").at("outcome") == "raises") {
            EXPECT_FALSE(outcome.refused.empty()) << entry.at("id") << ": " << note;
        }
    }
    // Whole items or files exchanged for others of the same shape are intact in themselves: only
    // checksums kept elsewhere could tell.
    EXPECT_EQ(silently_wrong, (std::vector<int>{46, 64, 65, 66, 68, 78}));
}

}  // namespace
}  // namespace swaplab::tests
