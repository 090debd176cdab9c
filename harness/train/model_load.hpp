#pragma once

/// The parameters' half of a load.

#include "swaplab/harness/tensor_reader.hpp"
#include "swaplab/optim/param_group.hpp"
#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/device.hpp"
#include "swaplab/sim/stream.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace swaplab::harness {

/// Parameters of a checkpoint on their way into the model of one rank, in blocks through one pinned
/// staging buffer. Device memory: nothing. Calls no collective.
class ModelLoad {
  public:
    /// Everything must outlive it.
    ModelLoad(sim::Device& device, const std::vector<optim::ParameterPtr>& model,
              TensorReader& reader, std::uint64_t chunk_bytes);

    [[nodiscard]] std::vector<optim::Mismatch> check() const;
    /// Allocates the staging: whatever may fail before a parameter changes.
    void prepare();
    /// From the checkpoint into the parameters.
    void read();
    /// From the checkpoint into host memory, on the ledger; the parameters stay as they are.
    void read_into_shadow();
    /// From there into the parameters: no file is touched.
    void write_shadow();

  private:
    /// Calls `fill(block, parameter, offset_bytes)` for each block and copies it to its parameter.
    template <class Fill>
    void write_blocks(const Fill& fill);

    sim::Device* device_;
    const std::vector<optim::ParameterPtr>* model_;
    TensorReader* reader_;
    std::uint64_t chunk_bytes_;
    std::optional<sim::Stream> stream_;
    sim::PinnedBuffer staging_;
    std::vector<sim::HostBuffer> shadow_;  ///< one per parameter
};

}  // namespace swaplab::harness
