#include "support/checkpoint_expectation.hpp"

#include "support/expected_value.hpp"

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/sim/digest.hpp"

#include <fmt/format.h>

#include <fstream>
#include <optional>

namespace swaplab::tests {
namespace {

using harness::Checkpoint;
using harness::Shape;
using optim::Value;

std::string place_text(const Json& json) {
    return fmt::format("{} {} {}", json.at("file").get<std::string>(),
                       json.at("pos").get<std::uint64_t>(), json.at("len").get<std::uint64_t>());
}

std::string place_text(const std::optional<harness::StoredItem>& item) {
    return item ? fmt::format("{} {} {}", item->relative_path, item->offset_bytes,
                              item->length_bytes)
                : "none";
}

std::string path_text(const Json& path) {
    std::string text;
    for (const Json& part : path) {
        text += part.is_string() ? "'" + part.get<std::string>() + "' " : part.dump() + " ";
    }
    return text;
}

std::string path_text(const std::vector<Value>& path) {
    std::string text;
    for (const Value& part : path) {
        const auto* name = part.get_if<std::string>();
        text += (name != nullptr ? "'" + *name + "'" : optim::repr(part)) + " ";
    }
    return text;
}

std::string text_or_empty(const Json& json, const char* name) {
    return json.contains(name) && json.at(name).is_string() ? json.at(name).get<std::string>() : "";
}

/// Hex digits of each element, most significant first.
std::string bits_text(const std::vector<std::byte>& bytes, std::size_t element_bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += element_bytes) {
        for (std::size_t b = element_bytes; b-- > 0;) {
            text += fmt::format("{:02x}", static_cast<unsigned>(bytes[i + b]));
        }
    }
    return text;
}

class Checker {
  public:
    Checker(harness::Storage& storage, const std::string& directory) : storage_(storage) {
        guarded(directory, [&] { checkpoint_.emplace(storage, directory); });
    }

    ExpectationResult run(const Json& json) {
        if (!checkpoint_) {
            return result_;
        }
        if (json.contains("items")) {
            check_typed(json);
        } else if (json.contains("saved_tensors")) {
            check_untyped(json);
        } else {
            result_.not_supported.emplace_back("a file without items or saved_tensors");
        }
        return result_;
    }

  private:
    void compare(const std::string& what, const std::string& expected, const std::string& found) {
        if (expected == found) {
            ++result_.agreeing;
        } else {
            result_.differing.push_back(
                fmt::format("{}: expected {}, found {}", what, expected, found));
        }
    }

    template <class Work>
    void guarded(const std::string& what, Work work) {
        try {
            work();
        } catch (const sim::Error& error) {
            result_.differing.push_back(what + ": " + error.message());
        }
    }

    void compare_value(const std::string& key, const Value& expected, const Value& found) {
        compare(key, optim::repr(expected), optim::repr(found));
        if (!optim::same_value(expected, found)) {
            result_.differing.push_back(key + ": another kind of value or other bits");
        }
    }

    void check_typed(const Json& json) {
        check_files(json);
        compare("keys", std::to_string(json.at("items").size()),
                std::to_string(checkpoint_->metadata().entries.size()));
        if (json.contains("metadata")) {
            const harness::Metadata& metadata = checkpoint_->metadata();
            const Json& expected = json.at("metadata");
            compare("version", text_or_empty(expected, "version"), metadata.version.value_or(""));
            const Json& meta = expected.at("storage_meta");
            compare("checkpoint_id", text_or_empty(meta, "checkpoint_id"), metadata.checkpoint_id);
            compare("save_id", text_or_empty(meta, "save_id"), metadata.save_id);
        }
        std::size_t position = 0;
        for (const Json& item : json.at("items")) {
            const std::string key = item.at("key");
            guarded(key, [&] { check_item(key, item, position); });
            ++position;
        }
    }

    void check_files(const Json& json) {
        if (!json.contains("files")) {
            return;
        }
        for (const auto& item : json.at("files").items()) {
            guarded(item.key(), [&] {
                const auto file = storage_.open(checkpoint_->directory() + "/" + item.key());
                std::vector<std::byte> bytes(file->size());
                file->read(0, bytes);
                compare(item.key(), item.value().at("sha256"), sim::sha256_hex(bytes));
            });
        }
    }

    void check_item(const std::string& key, const Json& item, std::size_t position) {
        const auto& entries = checkpoint_->metadata().entries;
        compare("key at its position", key,
                position < entries.size() ? entries[position].key : "none");
        const harness::MetadataEntry* entry = checkpoint_->find(key);
        if (entry == nullptr) {
            return;
        }
        if (item.contains("path")) {
            compare(key + " path", path_text(item.at("path")), path_text(entry->path));
        }
        if (item.at("kind") == "tensor") {
            check_tensor(key, item, entry->tensor());
            return;
        }
        compare(key + " place", place_text(item),
                place_text(std::get<harness::BytesEntry>(entry->data).stored));
        compare_value(key, typed_value(item.at("value")), checkpoint_->read_value(key));
    }

    void check_tensor(const std::string& key, const Json& item,
                      const harness::TensorEntry* tensor) {
        if (tensor == nullptr) {
            compare(key, "a tensor", "a value");
            return;
        }
        const auto yes = [](bool value) { return std::string(value ? "true" : "false"); };
        compare(key + " dtype", item.at("dtype"), std::string(sim::name_of(tensor->dtype)));
        compare(key + " shape", optim::to_string(item.at("shape").get<Shape>()),
                optim::to_string(tensor->global_shape));
        compare(key + " layout", item.at("layout"), tensor->layout);
        compare(key + " memory_format", item.at("memory_format"), tensor->memory_format);
        compare(key + " requires_grad", yes(item.at("requires_grad")), yes(tensor->requires_grad));
        compare(key + " pin_memory", yes(item.at("pin_memory")), yes(tensor->pin_memory));
        const Json& chunks = item.at("chunks");
        compare(key + " chunks", std::to_string(chunks.size()),
                std::to_string(tensor->chunks.size()));
        for (std::size_t i = 0; i < std::min(chunks.size(), tensor->chunks.size()); ++i) {
            check_chunk(key, chunks[i], tensor->chunks[i]);
        }
        check_bytes(key, item, *tensor);
    }

    void check_chunk(const std::string& key, const Json& expected,
                     const harness::StoredChunk& found) {
        compare(key + " offset", optim::to_string(expected.at("offsets").get<Shape>()),
                optim::to_string(found.box.offsets));
        compare(key + " size", optim::to_string(expected.at("sizes").get<Shape>()),
                optim::to_string(found.box.sizes));
        compare(key + " place", place_text(expected), place_text(found.stored));
        if (expected.contains("index_hint")) {
            const Json& hint = expected.at("index_hint");
            compare(key + " index hint", hint.is_null() ? "none" : hint.dump(),
                    found.index_hint ? std::to_string(*found.index_hint) : "none");
        }
        if (expected.contains("stored_shape")) {
            compare(key + " stored shape",
                    optim::to_string(expected.at("stored_shape").get<Shape>()),
                    optim::to_string(checkpoint_->read_header(key, found).stored_shape));
        }
    }

    void check_bytes(const std::string& key, const Json& item, const harness::TensorEntry& tensor) {
        const Json& values = item.at("values");
        if (names_other_items(item)) {
            compare(key + " read", "refused", was_refused(key) ? "refused" : "accepted");
            return;
        }
        const std::vector<std::byte> bytes = checkpoint_->read_tensor(key);
        compare(key + " sha256",
                item.at(item.contains("sha256") ? "sha256" : "sha256_of_true_global"),
                sim::sha256_hex(bytes));
        if (values.at("rule") == "formula") {
            const auto expected = formula_bytes(tensor.dtype, optim::numel(tensor.global_shape),
                                                values.at("fqn_index"), values.at("value_kind"));
            compare(key + " formula", sim::sha256_hex(expected), sim::sha256_hex(bytes));
        }
    }

    /// The file states that some chunk's item has another shape than the chunk.
    static bool names_other_items(const Json& item) {
        for (const Json& chunk : item.at("chunks")) {
            if (chunk.contains("stored_shape") && chunk.at("stored_shape") != chunk.at("sizes")) {
                return true;
            }
        }
        return false;
    }

    bool was_refused(const std::string& key) {
        try {
            return checkpoint_->read_tensor(key).empty();
        } catch (const harness::CheckpointCorrupt&) {
            return true;
        }
    }

    void check_untyped(const Json& json) {
        const Json& tensors = json.at("saved_tensors");
        const Json& objects = json.at("saved_objects");
        compare("keys", std::to_string(tensors.size() + objects.size()),
                std::to_string(checkpoint_->metadata().entries.size()));
        for (const auto& item : tensors.items()) {
            guarded(item.key(), [&] { check_bits(item.key(), item.value()); });
        }
        for (const auto& item : objects.items()) {
            guarded(item.key(), [&] {
                compare_value(item.key(), untyped_value(item.value().at("value")),
                              without_tuples(checkpoint_->read_value(item.key())));
            });
        }
    }

    void check_bits(const std::string& key, const Json& item) {
        const harness::MetadataEntry* entry = checkpoint_->find(key);
        if (entry == nullptr || entry->tensor() == nullptr) {
            compare(key, "a tensor", "none");
            return;
        }
        const harness::TensorEntry& tensor = *entry->tensor();
        const std::uint64_t element_bytes = sim::size_of(tensor.dtype);
        compare(key + " dtype", item.at("dtype"), std::string(sim::name_of(tensor.dtype)));
        compare(key + " shape", optim::to_string(item.at("global_size").get<Shape>()),
                optim::to_string(tensor.global_shape));
        const Json& chunks = item.at("chunks");
        compare(key + " chunks", std::to_string(chunks.size()),
                std::to_string(tensor.chunks.size()));
        for (const Json& chunk : chunks) {
            const harness::Box box{chunk.at("offset"), chunk.at("size")};
            std::vector<std::byte> bytes(static_cast<std::uint64_t>(optim::numel(box.sizes)) *
                                         element_bytes);
            checkpoint_->read_box(key, box, 0, bytes);
            compare(key + " bits", chunk.at("bits"), bits_text(bytes, element_bytes));
        }
    }

    harness::Storage& storage_;
    std::optional<Checkpoint> checkpoint_;
    ExpectationResult result_;
};

}  // namespace

ExpectationResult check_checkpoint(harness::Storage& storage, const std::string& directory,
                                   const std::string& expected_file) {
    std::ifstream stream(expected_file);
    return Checker(storage, directory).run(Json::parse(stream));
}

}  // namespace swaplab::tests
