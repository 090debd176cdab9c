#pragma once

/// What script/gpu-nightly measures on a CUDA device.

#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/cuda/cuda_device.hpp"
#include "swaplab/sim/timeline.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace swaplab::harness::nightly {

/// How much is moved: what goals are stated for, or little, so that it runs over the stand-in.
struct Sizes {
    std::uint64_t copy_bytes;
    int copies;
    std::int64_t elements;         ///< of the model whose moments are swapped
    std::int64_t tensors;          ///< that these elements are in
    std::int64_t kernel_elements;  ///< of the model updated on the device
    std::int64_t modelled_elements;
    std::int64_t bucket_elements;
    std::int64_t small_elements;  ///< of all the small tensors
    std::int64_t small_tensors;
    std::uint64_t pinned_bytes;  ///< of one pinned tensor
    int pinned_tensors;
    int steps;
};
[[nodiscard]] Sizes full_sizes();
[[nodiscard]] Sizes little_sizes();

enum class Kind : std::uint8_t { timing, memory };

/// A measured figure against its goal.
struct Measured {
    std::string name;
    Kind kind{};
    double value = 0;
    double goal = 0;
    bool at_least = false;  ///< else at most
    std::string unit;
    std::string about;  ///< the figures behind it
    [[nodiscard]] bool good() const { return at_least ? value >= goal : value <= goal; }
};

struct Measurements {
    sim::DeviceProfile profile;
    std::vector<Measured> figures;
};

[[nodiscard]] Measurements measure(sim::CudaDevice& device, sim::Communicator& communicator,
                                   const Sizes& sizes);

}  // namespace swaplab::harness::nightly
