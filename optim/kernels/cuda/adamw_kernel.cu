/// The AdamW update on CUDA: the host's operations, element by element.

#include "kernels/adamw_element.hpp"
#include "kernels/adamw_launch.hpp"

#include "swaplab/optim/cuda_kernels.hpp"
#include "swaplab/sim/cuda/standin.hpp"

#include <algorithm>
#include <cstddef>

namespace swaplab::optim {
namespace {

/// As many as the arguments of a kernel hold (32,764 B).
constexpr std::size_t segments_max = 256;
constexpr unsigned block_threads = 256;
/// Enough to fill the largest GPU several times over.
constexpr std::int64_t grid_width_max = 4096;

struct SegmentTable {
    KernelSegment segments[segments_max];
    unsigned count = 0;
};

/// One row of the grid per segment.
__global__ void adamw(const __grid_constant__ SegmentTable table) {
    const KernelSegment& segment = table.segments[blockIdx.y];
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < segment.count;
         i += stride) {
        adamw_element(segment.arrays, i, segment.scalars);
    }
}

const sim::KernelRegistration registration(adamw, [](const SegmentTable& table) {
    return make_adamw_kernel({table.segments, table.segments + table.count});
});

void launch(const std::vector<KernelSegment>& segments, void* native_stream) {
    for (std::size_t first = 0; first < segments.size(); first += segments_max) {
        SegmentTable table;
        std::int64_t count_max = 0;
        const std::size_t last = std::min(segments.size(), first + segments_max);
        for (std::size_t i = first; i < last; ++i) {
            table.segments[table.count++] = segments[i];
            count_max = std::max(count_max, segments[i].count);
        }
        const std::int64_t blocks = (count_max + block_threads - 1) / block_threads;
        const dim3 grid(static_cast<unsigned>(std::clamp(blocks, std::int64_t{1}, grid_width_max)),
                        table.count);
        adamw<<<grid, block_threads, 0, static_cast<cudaStream_t>(native_stream)>>>(table);
    }
}

}  // namespace

void register_cuda_kernels() noexcept {
    register_adamw_launcher(launch);
}

}  // namespace swaplab::optim
