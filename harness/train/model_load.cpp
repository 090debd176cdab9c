#include "train/model_load.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>

namespace swaplab::harness {

using optim::Mismatch;
using optim::Parameter;
using optim::ParameterPtr;

namespace {

std::string key_of(const Parameter& param) {
    return "model." + param.name;
}

}  // namespace

ModelLoad::ModelLoad(sim::Device& device, const std::vector<ParameterPtr>& model,
                     TensorReader& reader, std::uint64_t chunk_bytes)
    : device_(&device), model_(&model), reader_(&reader), chunk_bytes_(chunk_bytes) {}

std::vector<Mismatch> ModelLoad::check() const {
    std::vector<Mismatch> found;
    for (const ParameterPtr& param : *model_) {
        for (Mismatch& mismatch :
             reader_->check(key_of(*param), param->name, param->data, device_->rank())) {
            found.push_back(std::move(mismatch));
        }
    }
    return found;
}

void ModelLoad::prepare() {
    std::uint64_t largest = 0;
    for (const ParameterPtr& param : *model_) {
        largest = std::max(largest, param->data.local_bytes());
    }
    stream_.emplace(*device_, "load parameters");
    staging_ = sim::PinnedBuffer(*device_, std::min(largest, chunk_bytes_), "load staging");
}

template <class Fill>
void ModelLoad::write_blocks(const Fill& fill) {
    for (std::size_t i = 0; i < model_->size(); ++i) {
        optim::TensorStorage& target = (*model_)[i]->data.storage();
        for (std::uint64_t offset = 0; offset < target.bytes(); offset += staging_.bytes()) {
            const std::uint64_t bytes = std::min(staging_.bytes(), target.bytes() - offset);
            fill(staging_.write(0, bytes).bytes(), i, offset);
            device_->copy_async(target.data() + offset, staging_.data(), bytes,
                                sim::CopyDirection::host_to_device, *stream_);
            if (!SWAPLAB_MUTANT("engine.no_staging_wait")) {
                device_->synchronize(stream_->ref());
            }
        }
    }
}

void ModelLoad::read() {
    write_blocks([&](std::span<std::byte> block, std::size_t i, std::uint64_t offset) {
        const Parameter& param = *(*model_)[i];
        reader_->read(key_of(param), param.data, device_->rank(), offset, block);
    });
}

void ModelLoad::read_into_shadow() {
    for (const ParameterPtr& param : *model_) {
        sim::HostBuffer& copy =
            shadow_.emplace_back(*device_, param->data.local_bytes(), param->name + " shadow");
        reader_->read(key_of(*param), param->data, device_->rank(), 0, copy.bytes());
    }
}

void ModelLoad::write_shadow() {
    write_blocks([&](std::span<std::byte> block, std::size_t i, std::uint64_t offset) {
        const auto from = shadow_[i].bytes().subspan(offset, block.size());
        std::copy(from.begin(), from.end(), block.begin());
    });
}

}  // namespace swaplab::harness
