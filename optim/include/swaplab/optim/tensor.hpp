#pragma once

/// Tensors: a dtype, a local shape, bytes somewhere, and perhaps a place in a global tensor.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "swaplab/optim/sharding.hpp"
#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/device.hpp"
#include "swaplab/sim/dtype.hpp"

namespace swaplab::optim {

using sim::DType;

/// The bytes of one local tensor in row-major order, wherever they lie.
///
/// read() and write() move bytes between the storage and ordinary host memory, synchronously and in
/// any part; device storages do it through pinned staging. Offsets and sizes are in bytes and must
/// lie inside. Storages are shared by the tensors that use them.
class TensorStorage {
  public:
    TensorStorage() = default;
    TensorStorage(const TensorStorage&) = delete;
    TensorStorage& operator=(const TensorStorage&) = delete;
    virtual ~TensorStorage() = default;

    [[nodiscard]] virtual sim::MemoryKind kind() const noexcept = 0;
    [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
    virtual void read(std::uint64_t offset_bytes, std::span<std::byte> out) const = 0;
    virtual void write(std::uint64_t offset_bytes, std::span<const std::byte> in) = 0;
    /// First address, for identity and for copies and kernels; nullptr when bytes() is 0. Only a
    /// contiguous storage may be used from it onwards: all but live moments that span buckets and
    /// live steps, which are kept as integers.
    [[nodiscard]] virtual std::byte* data() const noexcept = 0;
};

/// A value handle, like torch.Tensor: copies share the storage. Contiguous row-major.
class Tensor {
  public:
    Tensor() = default;
    /// `storage` must hold exactly numel(local_shape) elements. With `shard`, local_shape is this
    /// rank's box of it; without, the tensor is plain: a DCP writer takes it for a replica.
    Tensor(DType dtype, Shape local_shape, std::shared_ptr<TensorStorage> storage,
           std::optional<ShardSpec> shard = std::nullopt);

    [[nodiscard]] bool defined() const noexcept { return storage_ != nullptr; }
    [[nodiscard]] DType dtype() const noexcept { return dtype_; }
    [[nodiscard]] const Shape& local_shape() const noexcept { return local_shape_; }
    /// The shard's global shape, or the local shape of a plain tensor.
    [[nodiscard]] const Shape& global_shape() const noexcept;
    [[nodiscard]] const std::optional<ShardSpec>& shard() const noexcept { return shard_; }
    [[nodiscard]] std::int64_t local_numel() const { return numel(local_shape_); }
    [[nodiscard]] std::uint64_t local_bytes() const { return storage_->bytes(); }
    [[nodiscard]] TensorStorage& storage() const noexcept { return *storage_; }
    [[nodiscard]] const std::shared_ptr<TensorStorage>& storage_ptr() const noexcept {
        return storage_;
    }
    [[nodiscard]] sim::MemoryKind memory() const noexcept { return storage_->kind(); }

    /// All local bytes, row-major little-endian.
    [[nodiscard]] std::vector<std::byte> to_bytes() const;
    /// The same storage without shard metadata.
    [[nodiscard]] Tensor without_shard() const;
    /// An owned copy in ordinary host memory with the same dtype, shape and shard.
    [[nodiscard]] Tensor clone_to_host() const;

  private:
    DType dtype_ = DType::float32;
    Shape local_shape_;
    std::shared_ptr<TensorStorage> storage_;
    std::optional<ShardSpec> shard_;
};

/// Ordinary host memory. With `device`, the bytes are on its ledger under `tag`.
[[nodiscard]] std::shared_ptr<TensorStorage> make_host_storage(std::uint64_t bytes);
[[nodiscard]] std::shared_ptr<TensorStorage> make_host_storage(sim::Device& device,
                                                               std::uint64_t bytes,
                                                               std::string_view tag);
[[nodiscard]] std::shared_ptr<TensorStorage> make_pinned_storage(sim::Device& device,
                                                                 std::uint64_t bytes,
                                                                 std::string_view tag);
/// Device memory on `stream`; read() and write() stage through at most `staging_bytes` of pinned
/// memory allocated for the call, ordered on that stream, and return when done. The device and the
/// stream must outlive the storage.
[[nodiscard]] std::shared_ptr<TensorStorage> make_device_storage(
    sim::Device& device, std::uint64_t bytes, sim::StreamRef stream, std::string_view tag,
    std::uint64_t staging_bytes = std::uint64_t{1} << 20U);

/// A host tensor holding `values`, for tests and small constants.
[[nodiscard]] Tensor make_host_tensor(const std::vector<float>& values, Shape local_shape,
                                      std::optional<ShardSpec> shard = std::nullopt);
/// A 0-dim float32 host tensor: Adam's step as PyTorch stores it.
[[nodiscard]] Tensor make_scalar(float value);

/// The values of a float32 tensor. Throws ArgumentError for another dtype.
[[nodiscard]] std::vector<float> to_floats(const Tensor& tensor);

}  // namespace swaplab::optim
