#include "tensor/storage_range.hpp"

#include "swaplab/optim/tensor.hpp"

#include <cstring>
#include <vector>

namespace swaplab::optim {
namespace {

class HostStorage : public TensorStorage {
  public:
    explicit HostStorage(std::uint64_t bytes) : bytes_(bytes) {}

    sim::MemoryKind kind() const noexcept override { return sim::MemoryKind::host; }
    std::uint64_t bytes() const noexcept override { return bytes_.size(); }
    std::byte* data() const noexcept override { return bytes_.empty() ? nullptr : bytes_.data(); }

    void read(std::uint64_t offset_bytes, std::span<std::byte> out) const override {
        check_range(offset_bytes, out.size(), bytes_.size());
        if (!out.empty()) {
            std::memmove(out.data(), bytes_.data() + offset_bytes, out.size());
        }
    }

    void write(std::uint64_t offset_bytes, std::span<const std::byte> in) override {
        check_range(offset_bytes, in.size(), bytes_.size());
        if (!in.empty()) {
            std::memmove(bytes_.data() + offset_bytes, in.data(), in.size());
        }
    }

  private:
    mutable std::vector<std::byte> bytes_;  // data() gives write access through a const tensor
};

}  // namespace

std::shared_ptr<TensorStorage> make_host_storage(std::uint64_t bytes) {
    return std::make_shared<HostStorage>(bytes);
}

}  // namespace swaplab::optim
