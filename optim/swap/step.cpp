#include "kernels/adamw_launch.hpp"
#include "swap/swap_state.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <optional>

namespace swaplab::optim {
namespace {

/// Scalars of the update that comes next, by ParamId; empty where there is none.
using NextScalars = std::vector<std::optional<AdamWScalars>>;

NextScalars next_scalars(const ParamTable& table, const std::vector<ParamId>& stepped) {
    NextScalars scalars(table.size());
    for (const ParamId id : stepped) {
        scalars[id] = adamw_scalars(table.options(id), (*table.steps())[id] + 1);
    }
    return scalars;
}

float* floats_at(std::byte* base, std::uint64_t offset_bytes) {
    return reinterpret_cast<float*>(base + offset_bytes);
}

sim::Kernel kernel_for(const Bucket& bucket, std::byte* slot, const ParamTable& table,
                       const NextScalars& scalars) {
    std::vector<KernelSegment> segments;
    for (const BucketSegment& part : bucket.segments) {
        if (!scalars[part.parameter]) {
            continue;
        }
        const Parameter& parameter = table.parameter(part.parameter);
        const std::uint64_t offset_bytes =
            static_cast<std::uint64_t>(part.parameter_offset_elements) * sizeof(float);
        const auto moment = [&](std::int64_t kind) {
            return floats_at(slot, bucket.offset_of(kind, part.bucket_offset_elements));
        };
        KernelSegment segment;
        segment.arrays.param = floats_at(parameter.data.storage().data(), offset_bytes);
        segment.arrays.grad = floats_at(parameter.grad.storage().data(), offset_bytes);
        segment.arrays.exp_avg = moment(0);
        segment.arrays.exp_avg_sq = moment(1);
        segment.arrays.max_exp_avg_sq = bucket.kinds == 3 ? moment(2) : nullptr;
        segment.count = part.count_elements;
        segment.scalars = *scalars[part.parameter];
        segments.push_back(segment);
    }
    return make_adamw_kernel(std::move(segments));
}

}  // namespace

std::vector<std::size_t> SwapAdamW::State::touched(const std::vector<ParamId>& ids) const {
    std::vector<bool> stepped(table->size(), false);
    for (const ParamId id : ids) {
        stepped[id] = true;
    }
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < plan.buckets.size(); ++i) {
        const auto& segments = plan.buckets[i].segments;
        if (std::any_of(segments.begin(), segments.end(),
                        [&](const BucketSegment& part) { return stepped[part.parameter]; }) ||
            SWAPLAB_MUTANT("step.touched_only")) {
            out.push_back(i);
        }
    }
    return out;
}

void SwapAdamW::State::make_slots(std::size_t count) {
    const std::uint64_t bytes = plan.largest_bucket_bytes();
    if (slot_bytes != bytes) {
        slots.clear();
        slot_bytes = bytes;
    }
    try {
        while (slots.size() < count) {
            slots.emplace_back(device, bytes, upload, "slot " + std::to_string(slots.size()));
        }
    } catch (...) {
        slots.clear();
        throw;
    }
}

void SwapAdamW::State::upload_bucket(const Bucket& bucket, DeviceSlot& slot, bool reused) {
    if (reused && !SWAPLAB_MUTANT("step.upload_waits_download")) {
        device.wait(upload, slot.downloaded);
    }
    if (!SWAPLAB_MUTANT("step.upload_copy")) {
        device.copy_async(slot.buffer.data(),
                          arenas[bucket.arena]->data() + bucket.arena_offset_bytes, bucket.bytes(),
                          sim::CopyDirection::host_to_device, upload);
    }
    device.record(slot.uploaded, upload);
}

void SwapAdamW::State::download_bucket(const Bucket& bucket, DeviceSlot& slot) {
    if (!SWAPLAB_MUTANT("step.download_waits_compute")) {
        device.wait(download, slot.computed);
    }
    if (!SWAPLAB_MUTANT("step.download_copy")) {
        device.copy_async(arenas[bucket.arena]->data() + bucket.arena_offset_bytes,
                          slot.buffer.data(), bucket.bytes(), sim::CopyDirection::device_to_host,
                          download);
    }
    device.record(slot.downloaded, download);
}

void SwapAdamW::State::run_ring(const std::vector<std::size_t>& buckets,
                                const std::vector<ParamId>& stepped) {
    SWAPLAB_ASSERT(plan.generation == table->generation(), "the bucket plan is out of date");
    const NextScalars scalars = next_scalars(*table, stepped);
    const std::size_t ring = std::min(slots.size(), buckets.size());
    for (std::size_t i = 0; i < buckets.size(); ++i) {
        const Bucket& bucket = plan.buckets[buckets[i]];
        DeviceSlot& slot = slots[i % ring];
        upload_bucket(bucket, slot, i >= ring);
        if (!SWAPLAB_MUTANT("step.compute_waits_upload")) {
            device.wait(compute, slot.uploaded);
        }
        device.launch(kernel_for(bucket, slot.buffer.data(), *table, scalars), compute);
        device.record(slot.computed, compute);
        download_bucket(bucket, slot);
    }
    if (SWAPLAB_MUTANT("step.host_waits_download")) {
        return;
    }
    for (std::size_t i = 0; i < ring; ++i) {
        device.synchronize(slots[i].downloaded);
    }
}

void SwapAdamW::State::drain() noexcept {
    try {
        for (const DeviceSlot& slot : slots) {
            device.synchronize(slot.uploaded);
            device.synchronize(slot.computed);
            device.synchronize(slot.downloaded);
        }
        for (const sim::StreamRef stream : {upload.ref(), compute.ref(), download.ref()}) {
            device.synchronize(stream);
        }
    } catch (...) {
        // A broken device cannot be waited for; the failure that led here is the one to report.
    }
}

void SwapAdamW::step() {
    State& state = *state_;
    refuse_torn(state.torn, state.table->rank(), "step");
    const std::vector<ParamId> stepped = state.table->to_step();
    const std::vector<std::size_t> buckets = state.touched(stepped);
    const std::size_t slots_max = static_cast<std::size_t>(state.options.slots);
    state.make_slots(std::min(slots_max, buckets.size()));
    try {
        state.run_ring(buckets, stepped);
    } catch (...) {
        // Some buckets may have been updated, with their parameters, and others not; nothing can
        // tell them apart.
        state.torn = {true, true};
        state.drain();
        state.slots.clear();
        throw;
    }
    for (const ParamId id : stepped) {
        (*state.table->steps())[id] += SWAPLAB_MUTANT("step.counts") ? 0 : 1;
    }
    if (!state.options.keep_slots) {
        state.slots.clear();
    }
}

}  // namespace swaplab::optim
