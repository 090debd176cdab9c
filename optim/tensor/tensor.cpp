#include "swaplab/optim/tensor.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace swaplab::optim {

Tensor::Tensor(DType dtype, Shape local_shape, std::shared_ptr<TensorStorage> storage,
               std::optional<ShardSpec> shard)
    : dtype_(dtype),
      local_shape_(std::move(local_shape)),
      storage_(std::move(storage)),
      shard_(std::move(shard)) {
    SWAPLAB_ASSERT(storage_ != nullptr, "a tensor needs a storage");
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(numel(local_shape_)) * sim::size_of(dtype_);
    SWAPLAB_ASSERT(storage_->bytes() == bytes,
                   fmt::format("storage of {} B for {} {} of {} B", storage_->bytes(),
                               sim::name_of(dtype_), to_string(local_shape_), bytes));
}

const Shape& Tensor::global_shape() const noexcept {
    return shard_ ? shard_->global_shape : local_shape_;
}

std::vector<std::byte> Tensor::to_bytes() const {
    std::vector<std::byte> bytes(storage_->bytes());
    storage_->read(0, bytes);
    return bytes;
}

Tensor Tensor::without_shard() const {
    return {dtype_, local_shape_, storage_};
}

Tensor Tensor::clone_to_host() const {
    auto copy = make_host_storage(storage_->bytes());
    copy->write(0, to_bytes());
    return {dtype_, local_shape_, std::move(copy), shard_};
}

Tensor make_host_tensor(const std::vector<float>& values, Shape local_shape,
                        std::optional<ShardSpec> shard) {
    auto storage = make_host_storage(values.size() * sizeof(float));
    storage->write(0, std::as_bytes(std::span(values)));
    return {DType::float32, std::move(local_shape), std::move(storage), std::move(shard)};
}

Tensor make_scalar(float value) {
    return make_host_tensor({value}, {});
}

std::vector<float> to_floats(const Tensor& tensor) {
    if (tensor.dtype() != DType::float32) {
        throw sim::ArgumentError(
            fmt::format("expected a float32 tensor, found {}", sim::name_of(tensor.dtype())),
            {{"expected", "float32"}, {"found", std::string(sim::name_of(tensor.dtype()))}});
    }
    std::vector<float> values(static_cast<std::size_t>(tensor.local_numel()));
    tensor.storage().read(0, std::as_writable_bytes(std::span(values)));
    return values;
}

}  // namespace swaplab::optim
