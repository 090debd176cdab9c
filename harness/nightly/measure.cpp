#include "nightly/measure.hpp"

#include "nightly/model.hpp"

#include "swaplab/harness/specimen.hpp"
#include "swaplab/optim/adamw.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/simulated_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

namespace swaplab::harness::nightly {
namespace {

constexpr std::uint64_t page_bytes = std::uint64_t{2} << 20U;
constexpr int slots = 3;
constexpr double moment_bytes_per_element = 8;  // without amsgrad
constexpr double kernel_bytes_per_element = 28;

double as_double(std::uint64_t value) {
    return static_cast<double>(value);
}

/// Copies of one size between buffers of its own.
class Copies {
  public:
    Copies(sim::Device& device, std::uint64_t bytes, int times)
        : device_(device),
          bytes_(bytes),
          times_(times),
          up_(device, "up"),
          down_(device, "down"),
          pinned_up_(device, bytes, "pinned up"),
          pinned_down_(device, bytes, "pinned down"),
          memory_up_(device, bytes, up_, "memory up"),
          memory_down_(device, bytes, down_, "memory down") {
        device.fill_async(memory_up_.data(), {}, bytes, up_);
        device.fill_async(memory_down_.data(), {}, bytes, down_);
        wait();
        static_cast<void>(seconds(true, true));  // what comes first is slower
    }

    /// Of one copy in each direction asked for.
    double seconds(bool up, bool down) {
        return seconds_of([&] {
                   for (int i = 0; i < times_; ++i) {
                       if (up) {
                           device_.copy_async(memory_up_.data(), pinned_up_.data(), bytes_,
                                              sim::CopyDirection::host_to_device, up_);
                       }
                       if (down) {
                           device_.copy_async(pinned_down_.data(), memory_down_.data(), bytes_,
                                              sim::CopyDirection::device_to_host, down_);
                       }
                   }
                   wait();
               }) /
               times_;
    }
    double seconds_on_device() {
        sim::Event filled(device_);
        device_.record(filled, down_);
        device_.wait(up_, filled);
        return seconds_of([&] {
                   for (int i = 0; i < times_; ++i) {
                       device_.copy_async(memory_up_.data(), memory_down_.data(), bytes_,
                                          sim::CopyDirection::device_to_device, up_);
                   }
                   wait();
               }) /
               times_;
    }

  private:
    void wait() {
        device_.synchronize(up_.ref());
        device_.synchronize(down_.ref());
    }

    sim::Device& device_;
    std::uint64_t bytes_;
    int times_;
    sim::Stream up_;
    sim::Stream down_;
    sim::PinnedBuffer pinned_up_;
    sim::PinnedBuffer pinned_down_;
    sim::DeviceBuffer memory_up_;
    sim::DeviceBuffer memory_down_;
};

sim::DeviceProfile measured_profile(sim::Device& device, const Sizes& sizes) {
    sim::DeviceProfile profile;
    profile.name = "measured";
    Copies copies(device, sizes.copy_bytes, sizes.copies);
    const double bytes = as_double(sizes.copy_bytes);
    profile.upload_bytes_per_second = bytes / copies.seconds(true, false);
    profile.download_bytes_per_second = bytes / copies.seconds(false, true);
    const double both = bytes / copies.seconds(true, true);
    profile.upload_beside_download_bytes_per_second = both;
    profile.download_beside_upload_bytes_per_second = both;
    profile.kernel_bytes_per_second = 2 * bytes / copies.seconds_on_device();
    Copies tiny(device, 256, sizes.copies);
    profile.copy_setup_seconds = tiny.seconds(true, false);
    profile.launch_seconds = profile.copy_setup_seconds;
    return profile;
}

/// Bytes of moments at the rate that each direction has beside the other.
double ideal_seconds(std::int64_t elements, const sim::DeviceProfile& profile) {
    return static_cast<double>(elements) * moment_bytes_per_element /
           std::min(profile.upload_beside_download_bytes_per_second,
                    profile.download_beside_upload_bytes_per_second);
}

optim::SwapAdamWOptions swap_options(const Sizes& sizes) {
    optim::SwapAdamWOptions options;
    options.bucket_elements = sizes.bucket_elements;
    options.slots = slots;
    return options;
}

/// The ring against the ideal, against one tensor after the other, and against what it may hold.
void measure_swap(sim::CudaDevice& device, sim::Communicator& communicator, const Sizes& sizes,
                  Measurements& out) {
    Model model(device, sizes.elements, sizes.tensors);
    double swap = 0;
    {
        optim::SwapAdamW optimizer(device, communicator, model.groups(), swap_options(sizes));
        device.forget_pool_peak();
        const std::uint64_t resident = device.pool_peak_bytes();
        swap = step_seconds(optimizer, sizes.steps);
        const std::uint64_t allowed = slots * optimizer.slot_bytes() + page_bytes;
        out.figures.push_back({"transient device bytes of a step", Kind::memory,
                               as_double(device.pool_peak_bytes() - resident), as_double(allowed),
                               false, "B",
                               fmt::format("{} slots of {} B", slots, optimizer.slot_bytes())});
    }
    const double ideal = ideal_seconds(sizes.elements, out.profile);
    out.figures.push_back(
        {"swap step / ideal", Kind::timing, swap / ideal, 1.08, false, "",
         fmt::format("{:.4f} s for {} elements, ideal {:.4f} s", swap, sizes.elements, ideal)});
    const auto plain = make_specimen(device, communicator, model.groups(), {});
    const double one_by_one = step_seconds(*plain, 1);
    out.figures.push_back({"per-tensor single-stream step / swap step", Kind::timing,
                           one_by_one / swap, 1.7, true, "",
                           fmt::format("{:.4f} s for {} tensors", one_by_one, sizes.tensors)});
}

void measure_kernel(sim::Device& device, sim::Communicator& communicator, const Sizes& sizes,
                    Measurements& out) {
    const Model model(device, sizes.kernel_elements, 1);
    optim::AdamW optimizer(device, communicator, model.groups());
    const double seconds = step_seconds(optimizer, sizes.steps);
    const double rate =
        static_cast<double>(sizes.kernel_elements) * kernel_bytes_per_element / seconds;
    out.figures.push_back({"kernel / device copy bandwidth", Kind::timing,
                           rate / out.profile.kernel_bytes_per_second, 0.85, true, "",
                           fmt::format("{:.1f} GB/s of {:.1f} GB/s", rate / 1e9,
                                       out.profile.kernel_bytes_per_second / 1e9)});
}

void measure_small_tensors(sim::Device& device, sim::Communicator& communicator, const Sizes& sizes,
                           Measurements& out) {
    const Model model(device, sizes.small_elements, sizes.small_tensors);
    optim::SwapAdamW optimizer(device, communicator, model.groups(), swap_options(sizes));
    const double seconds = step_seconds(optimizer, sizes.steps);
    out.figures.push_back(
        {"swap step of many small tensors", Kind::timing, seconds * 1e3, 6, false, "ms",
         fmt::format("{} tensors, {} elements", sizes.small_tensors, sizes.small_elements)});
}

/// What the GPU lost against what the ledger says, while a model is there.
void measure_ledger(sim::CudaDevice& device, const Sizes& sizes, Measurements& out) {
    device.forget_pool_peak();
    const std::uint64_t free_before = device.gpu_memory().free_bytes;
    const std::uint64_t charged_before =
        device.ledger().now(sim::MemoryKind::device, sim::Size::rounded);
    const Model model(device, sizes.elements, sizes.tensors);
    const std::uint64_t taken = free_before - device.gpu_memory().free_bytes;
    const std::uint64_t charged =
        device.ledger().now(sim::MemoryKind::device, sim::Size::rounded) - charged_before;
    const double apart = std::abs(as_double(taken) - as_double(charged));
    const std::uint64_t segments = device.ledger().live_count(sim::MemoryKind::device);
    out.figures.push_back(
        {"memory info against the ledger", Kind::memory, apart, as_double(segments * page_bytes),
         false, "B", fmt::format("GPU {} B, ledger {} B, {} segments", taken, charged, segments)});
}

void measure_pinned(sim::Device& device, const Sizes& sizes, Measurements& out) {
    const auto count = static_cast<std::uint64_t>(sizes.pinned_tensors);
    const double slab = seconds_of(
        [&] { const sim::PinnedBuffer all(device, sizes.pinned_bytes * count, "slab"); });
    const double each = seconds_of([&] {
        std::vector<sim::PinnedBuffer> tensors;
        for (std::uint64_t i = 0; i < count; ++i) {
            tensors.emplace_back(device, sizes.pinned_bytes, "tensor");
        }
    });
    out.figures.push_back({"pinned set-up per tensor / slab", Kind::timing, each / slab, 5, true,
                           "",
                           fmt::format("{} of {} B: {:.4f} s, slab {:.4f} s", count,
                                       sizes.pinned_bytes, each, slab)});
}

/// How long the step issued from `begin` on takes on a device like `profile`.
double modelled_seconds(const sim::SimulatedDevice& device, std::uint64_t begin,
                        const sim::DeviceProfile& profile) {
    const sim::TimedGraph graph = device.timed_graph();
    const auto times = sim::timeline(std::span(&graph, 1), profile).front();
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t last = 0;
    for (std::size_t i = begin; i < times.size(); ++i) {
        if (graph.operations[i].engine != sim::Engine::none) {
            first = std::min(first, times[i].begin_picoseconds);
            last = std::max(last, times[i].end_picoseconds);
        }
    }
    return as_double(last - std::min(first, last)) * 1e-12;
}

void measure_model(sim::Device& device, sim::Communicator& communicator, const Sizes& sizes,
                   Measurements& out) {
    const auto step_on = [&](sim::Device& on, const auto& use) {
        const Model model(on, sizes.modelled_elements, 8);
        optim::SwapAdamW optimizer(on, communicator, model.groups(), swap_options(sizes));
        use(optimizer);
    };
    double measured = 0;
    step_on(device,
            [&](optim::SwapAdamW& optimizer) { measured = step_seconds(optimizer, sizes.steps); });
    sim::SimulatedDeviceOptions options;
    options.capacity_bytes =
        static_cast<std::uint64_t>(sizes.modelled_elements) * 16 + (std::uint64_t{1} << 30U);
    options.check_accesses = false;
    options.poison = false;
    const auto simulated = sim::make_simulated_device(options);
    double modelled = 0;
    step_on(*simulated, [&](optim::SwapAdamW& optimizer) {
        const std::uint64_t begin = simulated->issue_point().operations;
        optimizer.step();
        modelled = modelled_seconds(*simulated, begin, out.profile);
    });
    out.figures.push_back({"simulated / measured step, apart", Kind::timing,
                           std::abs(modelled / measured - 1), 0.05, false, "",
                           fmt::format("simulated {:.4f} s, measured {:.4f} s for {} elements",
                                       modelled, measured, sizes.modelled_elements)});
}

}  // namespace

Sizes full_sizes() {
    Sizes sizes{};
    sizes.copy_bytes = std::uint64_t{256} << 20U;
    sizes.copies = 16;
    sizes.elements = std::int64_t{1} << 30U;
    sizes.tensors = 64;
    sizes.kernel_elements = std::int64_t{1} << 28U;
    sizes.modelled_elements = std::int64_t{1} << 27U;
    sizes.bucket_elements = std::int64_t{1} << 23U;
    sizes.small_elements = 25'240'000;
    sizes.small_tensors = 816;
    sizes.pinned_bytes = std::uint64_t{256} << 10U;
    sizes.pinned_tensors = 5000;
    sizes.steps = 5;
    return sizes;
}

Sizes little_sizes() {
    Sizes sizes = full_sizes();
    sizes.copy_bytes = std::uint64_t{64} << 10U;
    sizes.copies = 2;
    sizes.elements = std::int64_t{1} << 16U;
    sizes.kernel_elements = std::int64_t{1} << 14U;
    sizes.modelled_elements = std::int64_t{1} << 14U;
    sizes.bucket_elements = std::int64_t{1} << 12U;
    sizes.small_elements = 25'240;
    sizes.pinned_bytes = 4096;
    sizes.pinned_tensors = 50;
    sizes.steps = 1;
    return sizes;
}

Measurements measure(sim::CudaDevice& device, sim::Communicator& communicator, const Sizes& sizes) {
    Measurements out;
    out.profile = measured_profile(device, sizes);
    measure_ledger(device, sizes, out);
    measure_swap(device, communicator, sizes, out);
    measure_kernel(device, communicator, sizes, out);
    measure_small_tensors(device, communicator, sizes, out);
    measure_pinned(device, sizes, out);
    measure_model(device, communicator, sizes, out);
    return out;
}

}  // namespace swaplab::harness::nightly
