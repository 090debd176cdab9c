#include "kernels/adamw_launch.hpp"

#include <atomic>
#include <utility>

namespace swaplab::optim {
namespace {

std::atomic<AdamWLauncher> cuda_launcher{nullptr};

std::vector<sim::ByteRange> written_by(const std::vector<KernelSegment>& segments) {
    std::vector<sim::ByteRange> ranges;
    for (const KernelSegment& segment : segments) {
        const std::uint64_t bytes = static_cast<std::uint64_t>(segment.count) * sizeof(float);
        for (const float* array : {segment.arrays.param, segment.arrays.exp_avg,
                                   segment.arrays.exp_avg_sq, segment.arrays.max_exp_avg_sq}) {
            if (array != nullptr) {
                ranges.push_back({array, bytes});
            }
        }
    }
    return ranges;
}

AdamWArrays host_view(const AdamWArrays& arrays, const sim::DeviceAccess& access) {
    return {access.at(arrays.param), access.at(arrays.grad), access.at(arrays.exp_avg),
            access.at(arrays.exp_avg_sq),
            arrays.max_exp_avg_sq == nullptr ? nullptr : access.at(arrays.max_exp_avg_sq)};
}

}  // namespace

void register_adamw_launcher(AdamWLauncher launcher) noexcept {
    cuda_launcher = launcher;
}

std::function<void(void*)> adamw_cuda_launcher(std::vector<KernelSegment> segments) {
    const AdamWLauncher launcher = cuda_launcher;
    if (launcher == nullptr) {
        return {};
    }
    return [launcher, segments = std::move(segments)](void* stream) { launcher(segments, stream); };
}

sim::Kernel make_adamw_kernel(std::vector<KernelSegment> segments) {
    sim::Kernel kernel;
    kernel.name = "adamw";
    kernel.writes = written_by(segments);
    kernel.reads = kernel.writes;
    for (const KernelSegment& segment : segments) {
        kernel.reads.push_back(
            {segment.arrays.grad, static_cast<std::uint64_t>(segment.count) * sizeof(float)});
    }
    kernel.cuda_launcher = adamw_cuda_launcher(segments);
    kernel.host_body = [segments = std::move(segments)](const sim::DeviceAccess& access) {
        for (const KernelSegment& segment : segments) {
            adamw_update(host_view(segment.arrays, access), segment.count, segment.scalars);
        }
    };
    return kernel;
}

}  // namespace swaplab::optim
