#pragma once

/// What inspect finds in a checkpoint directory, as values; nothing here prints.

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/harness/exit_code.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace swaplab::harness {

/// What a tensor key is for. parameter: some moment's parameter. tensor: anything else.
enum class Role : std::uint8_t { parameter, moment, step, tensor };
[[nodiscard]] std::string_view name_of(Role role) noexcept;

struct ChunkReport {
    StoredChunk chunk;
    std::uint64_t there_bytes = 0;     ///< of the item, before its file ends
    std::optional<ItemHeader> header;  ///< empty when it was not or could not be read
    std::string unreadable;            ///< why the header could not be read

    /// The whole item is in its file and says of itself what .metadata says of it.
    [[nodiscard]] bool sound(sim::DType dtype) const;
};

struct TensorReport {
    std::string key;
    Role role = Role::tensor;
    std::string fqn;        ///< of a moment or step: "layers.0.weight"
    std::string moment;     ///< "exp_avg", ..., "step"
    std::string parameter;  ///< of a moment: its parameter's key, empty when unknown
    sim::DType dtype = sim::DType::float32;
    Shape shape;
    std::vector<ChunkReport> chunks;
    std::string sha256;  ///< of the assembled bytes; only when asked for and readable
};

/// A key that holds a Python object.
struct ObjectReport {
    std::string key;
    std::optional<StoredItem> stored;
    std::uint64_t there_bytes = 0;
    std::optional<optim::Value> value;  ///< empty when it was not or could not be read
    std::string unreadable;
};

struct FileReport {
    std::string path;                ///< inside the directory
    std::uint64_t bytes = 0;         ///< that are there
    std::uint64_t needed_bytes = 0;  ///< end of the last item that .metadata places in it
    bool exists = true;
    bool is_special = false;  ///< there is a pipe, socket or device in its place; it does not exist
};

/// The hyper-parameters of one parameter group, or of one parameter in a flattened checkpoint.
struct GroupReport {
    std::string name;  ///< "0", "1", or a parameter's fqn
    std::vector<std::pair<std::string, optim::Value>> values;
};

enum class FindingCode : std::uint8_t {
    unfinished_save,
    bad_metadata,
    missing_file,
    truncated_file,
    short_item,
    unreadable_item,
    exchanged_chunks,
    out_of_bounds,
    overlap,
    gap,
    lost_shards,
    impossible_step,
    step_disagreement,
};
/// "lost-shards", ...
[[nodiscard]] std::string_view name_of(FindingCode code) noexcept;

/// A rank's part of a tensor. `box` is empty when the rank is known and its range is not.
struct RankPart {
    int rank = 0;
    std::optional<Box> box;
};

/// One thing that is wrong with one key (or file). Fields that a code does not use stay empty.
struct Finding {
    FindingCode code = FindingCode::bad_metadata;
    std::string key;
    std::string detail;              ///< the fact in words, where the fields do not say it
    Shape saved;                     ///< shape of the key in .metadata
    std::int64_t elements = 0;       ///< of the tensor as it should be
    std::int64_t elements_lost = 0;  ///< that cannot be read, are in no file, lie in no chunk, ...

    std::string parameter;         ///< lost_shards: key of the parameter
    std::string parameter_source;  ///< lost_shards: file or directory of --against, or empty
    Shape parameter_shape;
    std::vector<RankPart> kept;
    std::optional<std::vector<RankPart>> lost;  ///< empty when the ranks are not known

    std::optional<Box> chunk;
    std::optional<StoredItem> item;
    std::uint64_t there_bytes = 0;
    std::optional<ItemHeader> header;  ///< exchanged_chunks: what the item really holds
    std::string file;                  ///< missing_file, truncated_file
};

/// A moment of which nothing in reach says how large its parameter is.
struct Unjudged {
    std::string key;
    std::string fqn;
    Shape saved;
};

struct InspectReport {
    std::string directory;
    std::vector<FileReport> files;  ///< all regular files there, and missing ones
    std::vector<int> ranks;         ///< from the names of the files that .metadata names, ascending
    std::vector<TensorReport> tensors;  ///< in stored order
    std::vector<ObjectReport> objects;
    std::vector<GroupReport> groups;
    std::vector<Finding> findings;  ///< by code, then by place in a file or by key
    std::vector<Unjudged> unjudged;
    std::vector<std::string> notes;
    std::vector<double> steps;         ///< of the step keys that were read and are possible
    std::uint64_t items = 0;           ///< stored items that .metadata names
    std::uint64_t objects_unread = 0;  ///< too large to be opened for a look

    [[nodiscard]] ExitCode exit_code() const noexcept;
};

}  // namespace swaplab::harness
