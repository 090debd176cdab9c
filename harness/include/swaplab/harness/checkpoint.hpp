#pragma once

/// Reading and writing PyTorch Distributed Checkpoint (DCP) directories.

#include "swaplab/harness/dcp_metadata.hpp"
#include "swaplab/harness/storage.hpp"
#include "swaplab/optim/state_dict.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/error.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace swaplab::harness {

/// The files of a checkpoint are not what they should be (truncated, not a checkpoint, an item that
/// holds something else than .metadata says). Fields: file, offset, key, expected, found.
using CheckpointCorrupt = sim::BasicError<sim::ErrorKind::corrupt, std::runtime_error>;

/// What the header of one stored tensor item says, read without its payload.
struct ItemHeader {
    sim::DType dtype = sim::DType::float32;
    Shape stored_shape;                      ///< of data.pkl
    std::uint64_t payload_bytes = 0;         ///< of the data/0 record
    std::uint64_t payload_offset_bytes = 0;  ///< of that record in the item
};

/// Whether payloads are compared with the checksums that were written with them. ignored: as
/// PyTorch's reader does, which is built without that check.
enum class Checksums : std::uint8_t { compared, ignored };

/// An opened DCP directory. Reading does not change it. Threads: one per object.
/// Errors: StorageError (no such directory, unreadable), CheckpointCorrupt (a data file that is
/// missing or cut as well).
class Checkpoint {
  public:
    /// Reads `.metadata`. `storage` must outlive the checkpoint.
    Checkpoint(Storage& storage, std::string directory, Checksums checksums = Checksums::compared);

    [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
    [[nodiscard]] const Metadata& metadata() const noexcept { return metadata_; }
    [[nodiscard]] Storage& storage() const noexcept { return *storage_; }

    /// A non-tensor item. Objects of classes that are not opened come back as Opaque.
    [[nodiscard]] optim::Value read_value(const std::string& key);
    /// Fills `out` with the row-major bytes of `box` of tensor `key`, from byte `offset_bytes` of
    /// the box on. Every byte asked for must be in some chunk. Holds at most 64 KiB beside `out`,
    /// or one chunk where it was stored with strides. What is read of an item from its first byte
    /// to its last, in one call or several, is compared with the item's checksum (unless ignored).
    void read_box(const std::string& key, const Box& box, std::uint64_t offset_bytes,
                  std::span<std::byte> out);
    /// The same without the demand: bytes that no chunk holds stay as they are in `out`. Returns
    /// how many were filled. This is what a load without size checks does.
    std::uint64_t read_present(const std::string& key, const Box& box, std::uint64_t offset_bytes,
                               std::span<std::byte> out);
    /// All bytes of the global tensor, row-major. Refuses a tensor larger than its files.
    [[nodiscard]] std::vector<std::byte> read_tensor(const std::string& key);
    /// What the item itself says, whatever .metadata says about the chunk.
    [[nodiscard]] ItemHeader read_header(const std::string& key, const StoredChunk& chunk);
    /// Bytes of a data file.
    [[nodiscard]] std::uint64_t file_bytes(const std::string& relative_path);

    /// The whole nested state dict that was saved: dicts and lists rebuilt from the paths, tensors
    /// assembled in host memory. For tools and tests; training loads through read_box.
    [[nodiscard]] optim::Value read_all();

    /// Like metadata().find(), fast in large checkpoints.
    [[nodiscard]] const MetadataEntry* find(const std::string& key) const;

  private:
    struct OpenItem;
    [[nodiscard]] ReadableFile& file(const std::string& relative_path);
    [[nodiscard]] OpenItem& item(const std::string& key, const StoredChunk& chunk);
    [[nodiscard]] const TensorEntry& tensor_entry(const std::string& key) const;

    Storage* storage_;
    std::string directory_;
    Checksums checksums_;
    Metadata metadata_;
    std::map<std::string, std::size_t> by_key_;
    std::map<std::string, std::shared_ptr<ReadableFile>> files_;
    std::map<std::pair<std::string, std::uint64_t>, std::shared_ptr<OpenItem>> items_;
};

class Publisher;

/// How a save cuts and writes.
struct SaveOptions {
    std::uint64_t chunk_bytes = std::uint64_t{1} << 20U;  ///< staging block
    bool dedup_to_lowest_rank = false;
    /// Called on every rank as work goes on: phase ("write", "publish"), bytes
    /// done, bytes in all of this rank. A throw from it fails the save like any other error.
    std::function<void(std::string_view phase, std::uint64_t done, std::uint64_t total)> progress;
    /// Called with the name of each phase as it begins: "plan", "validate", "stage", "publish".
    std::function<void(std::string_view phase)> on_phase;
    /// How the directory is made to appear; empty: as save_checkpoint() says. Anything else is a
    /// specimen (specimen_engine() in specimen.hpp).
    std::function<std::unique_ptr<Publisher>(Storage& storage, const std::string& directory)>
        make_publisher;
};

struct SaveReport {
    std::uint64_t files = 0;  ///< of all ranks, .metadata included
    std::uint64_t bytes = 0;  ///< of all ranks, .metadata included
};

/// Collective. Writes `tree` (nested dicts of values and tensors, as PyTorch's dcp.save takes it)
/// as a DCP directory that torch 2.8 loads: plan on every rank, deduplicate, validate, write,
/// publish. Plain tensors and values under equal keys count as replicas, tensors with a shard as
/// parts. Written into `directory`.incomplete first, synced, then renamed (exchanged when one is
/// replaced). Throws on all ranks when one rank fails; the old checkpoint of that name is then
/// untouched.
SaveReport save_checkpoint(sim::Communicator& communicator, Storage& storage,
                           const std::string& directory, const optim::Value& tree,
                           const SaveOptions& options = {});

/// Which of a checkpoint's faults a load looks for before it reads. full: everything that can be
/// known from .metadata and file sizes (shapes, dtypes, tiling, files). torch: what PyTorch 2.8's
/// load planner checks (key present, global sizes). none: what a planner without the size check
/// does.
enum class Checks : std::uint8_t { full, torch, none };

/// The optimizer state under `prefix` ("optimizer") of a checkpoint as a StateSource: nested form
/// (optimizer.state.<fqn>.<key>) and flattened form. The checkpoint must outlive it. Checks and
/// reads tensors through TensorReader (tensor_reader.hpp).
[[nodiscard]] std::unique_ptr<optim::StateSource> make_checkpoint_source(Checkpoint& checkpoint,
                                                                         const std::string& prefix,
                                                                         Checks checks);

}  // namespace swaplab::harness
