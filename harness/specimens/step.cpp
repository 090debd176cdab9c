#include "specimens/specimen.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace swaplab::harness {

using optim::AdamWArrays;
using optim::AdamWOptions;
using optim::AdamWScalars;
using optim::Parameter;
using optim::ParamGroup;
using optim::Tensor;

namespace {

/// One moment on the device for the length of one update: copied up when made, down by leave().
/// Moments that are not the specimen's own may lie in pieces, so they are staged.
class Visit {
  public:
    Visit(sim::Device& device, sim::StreamRef stream, const Tensor& moment, const std::string& tag,
          bool own)
        : device_(&device), stream_(stream), home_(&moment.storage()) {
        const std::uint64_t bytes = home_->bytes();
        if (home_->kind() == sim::MemoryKind::device) {
            address_ = home_->data();
            return;
        }
        slot_ = sim::DeviceBuffer(device, bytes, stream, tag);
        address_ = slot_.data();
        host_ = home_->data();
        if (!own || home_->kind() != sim::MemoryKind::pinned) {
            staging_.emplace(device, bytes, tag + " staging");
            home_->read(0, staging_->write(0, bytes).bytes());
            host_ = staging_->data();
        }
        device.copy_async(address_, host_, bytes, sim::CopyDirection::host_to_device, stream);
    }

    [[nodiscard]] std::byte* address() const noexcept { return address_; }

    /// Downloads the moment on `stream`, which does not wait for the update if that is another one.
    void download(sim::StreamRef stream) {
        if (host_ == nullptr) {
            return;
        }
        stream_ = stream;
        device_->copy_async(host_, address_, home_->bytes(), sim::CopyDirection::device_to_host,
                            stream_);
        if (staging_) {
            device_->synchronize(stream_);
            home_->write(0, staging_->read(0, home_->bytes()).bytes());
        }
    }

    /// Returns the device copy, which nobody needs any more. It will be freed on `stream`.
    sim::DeviceBuffer leave(sim::StreamRef stream, bool waits) {
        if (host_ != nullptr && stream != stream_) {
            if (waits) {
                const sim::Event done(*device_);
                device_->record(done, stream_);
                device_->wait(stream, done);
            }
            slot_.set_stream(stream);
        }
        return std::move(slot_);
    }

  private:
    sim::Device* device_;
    sim::StreamRef stream_;
    optim::TensorStorage* home_;
    sim::DeviceBuffer slot_;
    std::optional<sim::PinnedBuffer> staging_;
    std::byte* address_ = nullptr;
    std::byte* host_ = nullptr;
};

/// PyTorch's words when a loaded moment does not fit its parameter.
void require_shape(const Parameter& param, const char* key, const Tensor& moment) {
    if (!moment.defined()) {
        throw sim::ArgumentError(
            fmt::format("{}: no {}, though amsgrad is on: load a state dict that was saved with "
                        "amsgrad, or switch it off",
                        param.name, key),
            {{"operation", "step"},
             {"parameter", param.name},
             {"key", key},
             {"expected", optim::to_string(param.data.local_shape())},
             {"found", "missing"}});
    }
    if (moment.local_shape() == param.data.local_shape()) {
        return;
    }
    const std::string expected = optim::to_string(param.data.local_shape());
    const std::string found = optim::to_string(moment.local_shape());
    throw sim::ArgumentError(fmt::format("{}: {} has shape {}, the parameter {}: load a state dict "
                                         "whose moments have the parameters' shapes",
                                         param.name, key, found, expected),
                             {{"operation", "step"},
                              {"parameter", param.name},
                              {"key", key},
                              {"expected", expected},
                              {"found", found}});
}

}  // namespace

void Specimen::step() {
    if (torn()) {
        throw optim::TornState(
            fmt::format("rank {}: step refused: parameters or moments are half overwritten by a "
                        "load that failed\n  do  load a complete checkpoint first",
                        communicator_->rank()),
            {{"operation", "step"}, {"rank", fmt::format("rank {}", communicator_->rank())}});
    }
    const bool leaks = defects_.has(Defect::slots_leak);
    if (!leaks) {
        slots_.clear();
    }
    for (const ParamGroup& group : *step_groups_) {
        if (defects_.has(Defect::step_per_group)) {
            advance_group(group);
        }
        for (const auto& param : group.params) {
            if (param->has_grad && find_state(*param) != nullptr) {
                if (!leaks && !defects_.has(Defect::slots_pile_up)) {
                    slots_.clear();
                }
                update(*param, group.options);
            }
        }
    }
    device_->synchronize(stream_.ref());
    if (defects_.has(Defect::download_unwaited)) {
        device_->synchronize(other_stream_->ref());
    }
    if (!leaks && !defects_.has(Defect::slots_stay)) {
        slots_.clear();
    }
}

void Specimen::advance_group(const ParamGroup& group) {
    std::int64_t counter = 0;
    for (const auto& param : group.params) {
        if (const ParamState* state = find_state(*param)) {
            counter = std::max(counter, step_value(state->step));
        }
    }
    for (const auto& param : group.params) {
        if (const ParamState* state = find_state(*param)) {
            set_step(state->step, counter + 1);
        }
    }
}

void Specimen::update(const Parameter& param, const AdamWOptions& options) {
    const ParamState& state = state_.at(param.name);
    if (!defects_.has(Defect::step_per_group)) {
        set_step(state.step, step_value(state.step) + 1);
    }
    const std::size_t kinds = options.amsgrad ? 3 : 2;
    const Moments& moments = moments_of_step(param.name);
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        require_shape(param, moment_keys[kind], moments[kind]);
    }
    if (param.data.local_numel() == 0) {
        return;
    }
    std::vector<Visit> visits;
    std::array<std::byte*, 3> addresses{};
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        visits.emplace_back(*device_, stream_, moments[kind], param.name + "." + moment_keys[kind],
                            !defects_.has(Defect::alias_on_load));
        addresses[kind] = visits.back().address();
    }
    launch(param, optim::adamw_scalars(options, step_value(state.step)), addresses);
    const sim::StreamRef other = other_stream_ ? other_stream_->ref() : stream_.ref();
    const bool downloads_there = defects_.has(Defect::download_unwaited);
    for (Visit& visit : visits) {
        visit.download(downloads_there ? other : stream_.ref());
        slots_.push_back(visit.leave(other, !defects_.has(Defect::frees_unwaited)));
    }
}

void Specimen::launch(const Parameter& param, const AdamWScalars& scalars,
                      const std::array<std::byte*, 3>& moments) {
    const std::uint64_t bytes = param.data.local_bytes();
    const std::int64_t count = param.data.local_numel();
    std::byte* const home = param.data.storage().data();
    const bool aside = defects_.has(Defect::updates_aside);
    sim::DeviceBuffer copy;
    if (aside) {
        copy = sim::DeviceBuffer(*device_, bytes, stream_, param.name + ".new");
        device_->copy_async(copy.data(), home, bytes, sim::CopyDirection::device_to_device,
                            stream_);
    }
    std::byte* const data = aside ? copy.data() : home;
    std::byte* const grad = param.grad.storage().data();
    sim::Kernel kernel;
    kernel.name = "adamw";
    kernel.reads = {{data, bytes}, {grad, bytes}};
    kernel.writes = {{data, bytes}};
    for (std::byte* moment : moments) {
        if (moment != nullptr) {
            kernel.reads.push_back({moment, bytes});
            kernel.writes.push_back({moment, bytes});
        }
    }
    const auto device_floats = [](std::byte* address) {
        return reinterpret_cast<float*>(address);  // NOLINT: as the storage of a tensor
    };
    kernel.cuda_launcher = optim::adamw_cuda_launcher(
        {{{device_floats(data), device_floats(grad), device_floats(moments[0]),
           device_floats(moments[1]), device_floats(moments[2])},
          count,
          scalars}});
    kernel.host_body = [=](const sim::DeviceAccess& access) {
        const auto floats = [&](std::byte* device_address) -> float* {
            // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
            return device_address == nullptr ? nullptr
                                             : reinterpret_cast<float*>(access.at(device_address));
        };
        optim::adamw_update({floats(data), floats(grad), floats(moments[0]), floats(moments[1]),
                             floats(moments[2])},
                            count, scalars);
    };
    device_->launch(std::move(kernel), stream_);
    if (aside) {
        device_->copy_async(home, data, bytes, sim::CopyDirection::device_to_device, stream_);
        slots_.push_back(std::move(copy));
    }
}

}  // namespace swaplab::harness
