#pragma once

/// Reading tensors of a checkpoint into live ones: what is checked before, what is read after.

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/optim/state_dict.hpp"
#include "swaplab/optim/tensor.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace swaplab::harness {

/// Both halves of a load of tensors, for parameters and moments alike. Threads: one per object.
/// The checkpoint must outlive it. Errors: as Checkpoint.
class TensorReader {
  public:
    /// With Checks::full lists the checkpoint's files once.
    TensorReader(Checkpoint& checkpoint, Checks checks);

    /// What speaks against loading tensor `key` into `live` as held by `rank`. The key must be
    /// there and hold a tensor of live's dtype under all checks; global shapes must be equal under
    /// torch and full; under full the chunks must tile the tensor and lie in files that hold them,
    /// and the items that this rank will read must hold what .metadata says. `parameter` is its
    /// fqn, for the mismatch. With lost shards, the mismatch says whose: the writer is known from
    /// the item's file name, its part from the chunks of model.PARAMETER or from the live tensor.
    [[nodiscard]] std::vector<optim::Mismatch> check(const std::string& key,
                                                     const std::string& parameter,
                                                     const optim::Tensor& live, int rank) const;

    /// Fills `out` with the bytes [offset_bytes, offset_bytes + out.size()) of live's local part in
    /// row-major order. Elements that no chunk covers (impossible after a full check) keep the
    /// bytes that `out` holds, as in PyTorch's load planner.
    void read(const std::string& key, const optim::Tensor& live, int rank,
              std::uint64_t offset_bytes, std::span<std::byte> out);

  private:
    void check_chunks(const std::string& key, const TensorEntry& entry, const Box& mine,
                      optim::Mismatch& mismatch, std::vector<optim::Mismatch>& found) const;
    [[nodiscard]] std::string file_fault(const StoredChunk& chunk) const;
    [[nodiscard]] std::string header_fault(const std::string& key, const TensorEntry& entry,
                                           const StoredChunk& chunk) const;

    Checkpoint* checkpoint_;
    Checks checks_;
    std::map<std::string, std::uint64_t> file_bytes_;  ///< by name, under Checks::full
};

/// The box of its global tensor that `rank` holds of `live`; a plain tensor is all of itself.
[[nodiscard]] Box box_of(const optim::Tensor& live, int rank);

}  // namespace swaplab::harness
