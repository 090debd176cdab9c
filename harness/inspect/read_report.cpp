#include "inspect/read_report.hpp"

#include "inspect/roles.hpp"

#include "swaplab/sim/digest.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace swaplab::harness {
namespace {

constexpr std::uint64_t max_object_bytes = std::uint64_t{16} << 20U;
constexpr std::uint64_t digest_block_bytes = std::uint64_t{1} << 20U;

class Reader {
  public:
    explicit Reader(Checkpoint& checkpoint) : checkpoint_(checkpoint) {
        report_.directory = checkpoint.directory();
        for (const auto& entry : checkpoint.storage().list(checkpoint.directory())) {
            if (entry.is_special) {
                special_.insert(entry.name);
            } else if (!entry.is_directory) {
                sizes_[entry.name] = entry.bytes;
            }
        }
    }

    InspectReport read() {
        for (const MetadataEntry& entry : checkpoint_.metadata().entries) {
            if (const TensorEntry* tensor = entry.tensor()) {
                add_tensor(entry.key, *tensor);
            } else {
                add_object(entry.key, std::get<BytesEntry>(entry.data));
            }
        }
        add_parameters();
        add_groups();
        add_files();
        return std::move(report_);
    }

  private:
    std::uint64_t note_item(const StoredItem& item) {
        ++report_.items;
        auto& needed = needed_[item.relative_path];
        needed = std::max(needed, item.offset_bytes + item.length_bytes);
        const auto file = sizes_.find(item.relative_path);
        if (file == sizes_.end() || file->second <= item.offset_bytes) {
            return 0;
        }
        return std::min(item.length_bytes, file->second - item.offset_bytes);
    }

    void add_tensor(const std::string& key, const TensorEntry& entry) {
        TensorReport tensor;
        tensor.key = key;
        tensor.dtype = entry.dtype;
        tensor.shape = entry.global_shape;
        if (const auto state = state_key(key)) {
            tensor.role = state->is_moment() ? Role::moment : Role::step;
            tensor.fqn = state->fqn;
            tensor.moment = state->leaf;
        }
        for (const StoredChunk& chunk : entry.chunks) {
            tensor.chunks.push_back(read_chunk(key, chunk));
        }
        report_.tensors.push_back(std::move(tensor));
    }

    ChunkReport read_chunk(const std::string& key, const StoredChunk& stored) {
        ChunkReport chunk;
        chunk.chunk = stored;
        if (!stored.stored) {
            return chunk;
        }
        chunk.there_bytes = note_item(*stored.stored);
        if (chunk.there_bytes == stored.stored->length_bytes) {
            try {
                chunk.header = checkpoint_.read_header(key, stored);
            } catch (const CheckpointCorrupt& error) {
                chunk.unreadable = error.what();
            }
        }
        return chunk;
    }

    void add_object(const std::string& key, const BytesEntry& entry) {
        ObjectReport object;
        object.key = key;
        object.stored = entry.stored;
        if (entry.stored) {
            object.there_bytes = note_item(*entry.stored);
            if (entry.stored->length_bytes > max_object_bytes) {
                ++report_.objects_unread;
            } else if (object.there_bytes == entry.stored->length_bytes) {
                try {
                    object.value = checkpoint_.read_value(key);
                } catch (const CheckpointCorrupt& error) {
                    object.unreadable = error.what();
                }
            }
        }
        report_.objects.push_back(std::move(object));
    }

    /// Tensors outside of any optimizer state that are some moment's parameter.
    void add_parameters() {
        std::set<std::string> prefixes;
        for (const TensorReport& tensor : report_.tensors) {
            if (tensor.role == Role::moment) {
                prefixes.insert(state_key(tensor.key)->prefix);
            }
        }
        const auto inside_state = [&](const std::string& key) {
            return std::any_of(prefixes.begin(), prefixes.end(),
                               [&](const std::string& p) { return key.starts_with(p); });
        };
        std::vector<KnownShapes::Entry> shapes;
        for (const TensorReport& tensor : report_.tensors) {
            if (!inside_state(tensor.key)) {
                shapes.emplace_back(tensor.key, tensor.shape);
            }
        }
        const KnownShapes outside("", std::move(shapes));
        std::set<std::string> parameters;
        for (TensorReport& tensor : report_.tensors) {
            const auto* found = tensor.role == Role::moment ? outside.find(tensor.fqn) : nullptr;
            if (found != nullptr) {
                tensor.parameter = found->first;
                parameters.insert(found->first);
            }
        }
        for (TensorReport& tensor : report_.tensors) {
            if (parameters.contains(tensor.key)) {
                tensor.role = Role::parameter;
            }
        }
    }

    /// "optimizer.param_groups.0.lr" belongs to group "0"; a flattened checkpoint names a parameter
    /// instead of a number.
    void add_groups() {
        constexpr std::string_view marker = "param_groups.";
        std::map<std::string, std::size_t> place_of;
        for (const ObjectReport& object : report_.objects) {
            const std::size_t at = object.key.find(marker);
            const std::size_t dot = object.key.rfind('.');
            if (at == std::string::npos || (at > 0 && object.key[at - 1] != '.') ||
                dot < at + marker.size() || !object.value) {
                continue;
            }
            const std::string name =
                object.key.substr(at + marker.size(), dot - at - marker.size());
            const auto [place, is_new] = place_of.try_emplace(name, report_.groups.size());
            if (is_new) {
                report_.groups.push_back({name, {}});
            }
            report_.groups[place->second].values.emplace_back(object.key.substr(dot + 1),
                                                              *object.value);
        }
    }

    void add_files() {
        std::set<int> ranks;
        for (const auto& [path, bytes] : needed_) {
            if (const auto rank = writer_of(path)) {
                ranks.insert(*rank);
            }
            if (!sizes_.contains(path)) {
                report_.files.push_back({path, 0, bytes, false, special_.contains(path)});
            }
        }
        report_.ranks.assign(ranks.begin(), ranks.end());
        for (const auto& [path, bytes] : sizes_) {
            const auto needed = needed_.find(path);
            report_.files.push_back({path, bytes, needed == needed_.end() ? 0 : needed->second});
        }
        std::sort(report_.files.begin(), report_.files.end(),
                  [](const FileReport& a, const FileReport& b) { return a.path < b.path; });
    }

    Checkpoint& checkpoint_;
    InspectReport report_;
    std::map<std::string, std::uint64_t> sizes_;
    std::set<std::string> special_;
    std::map<std::string, std::uint64_t> needed_;
};

}  // namespace

InspectReport read_report(Checkpoint& checkpoint) {
    return Reader(checkpoint).read();
}

void add_digests(Checkpoint& checkpoint, InspectReport& report) {
    for (TensorReport& tensor : report.tensors) {
        const auto bytes =
            static_cast<std::uint64_t>(optim::numel(tensor.shape)) * size_of(tensor.dtype);
        const Box whole{Shape(tensor.shape.size(), 0), tensor.shape};
        sim::Sha256 digest;
        std::vector<std::byte> block;
        try {
            for (std::uint64_t done = 0; done < bytes; done += block.size()) {
                block.resize(std::min(digest_block_bytes, bytes - done));
                checkpoint.read_box(tensor.key, whole, done, block);
                digest.update(block);
            }
            tensor.sha256 = digest.finish_hex();
        } catch (const CheckpointCorrupt&) {
            continue;  // the finding says why
        } catch (const StorageError&) {
            continue;
        }
    }
}

}  // namespace swaplab::harness
