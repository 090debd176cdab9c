#pragma once

/// What a SwapAdamW holds, shared by the files that implement it.

#include "swap/bucket_plan.hpp"
#include "table/param_table.hpp"
#include "table/torn_state.hpp"

#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/stream.hpp"

#include <memory>
#include <string>
#include <vector>

namespace swaplab::optim {

/// One place of the ring on the device, and the events that order its reuse.
struct DeviceSlot {
    DeviceSlot(sim::Device& device, std::uint64_t bytes, sim::StreamRef upload,
               const std::string& tag)
        : buffer(device, bytes, upload, tag),
          uploaded(device),
          computed(device),
          downloaded(device) {}

    sim::DeviceBuffer buffer;
    sim::Event uploaded;
    sim::Event computed;
    sim::Event downloaded;
};

struct SwapAdamW::State {
    State(sim::Device& on_device, sim::Communicator& among, const SwapAdamWOptions& how)
        : device(on_device),
          communicator(among),
          options(how),
          upload(on_device, "upload"),
          compute(on_device, "compute"),
          download(on_device, "download") {}

    /// The plan and the arena that `parameters` appended to the table would need. Throws when
    /// pinned memory runs out; nothing has changed then.
    struct Growth {
        BucketPlan plan;
        std::shared_ptr<sim::PinnedBuffer> arena;
    };
    [[nodiscard]] Growth grow(const std::vector<FlatParameter>& parameters) const;
    /// Makes a growth the present state; the table has the parameters already.
    void commit(Growth growth);

    /// The live moments of `id`, one per moment key.
    [[nodiscard]] std::vector<Tensor> moments(ParamId id) const;
    [[nodiscard]] std::vector<std::size_t> touched(const std::vector<ParamId>& ids) const;

    /// Makes the ring at least `count` slots of the present size. Throws OutOfDeviceMemory.
    void make_slots(std::size_t count);
    /// Sends `buckets` through the ring with scalars by ParamId; returns when all are back.
    void run_ring(const std::vector<std::size_t>& buckets, const std::vector<ParamId>& stepped);

    /// Lets issued work end after a failure, so that its memory may be given back.
    void drain() noexcept;

    sim::Device& device;
    sim::Communicator& communicator;
    SwapAdamWOptions options;
    std::unique_ptr<ParamTable> table;
    BucketPlan plan;
    std::vector<std::shared_ptr<sim::PinnedBuffer>> arenas;
    sim::Stream upload;
    sim::Stream compute;
    sim::Stream download;
    std::vector<DeviceSlot> slots;
    std::uint64_t slot_bytes = 0;  ///< of the slots that exist
    TornMarks torn;

  private:
    void upload_bucket(const Bucket& bucket, DeviceSlot& slot, bool reused);
    void download_bucket(const Bucket& bucket, DeviceSlot& slot);
};

}  // namespace swaplab::optim
