#include "tensor/storage_range.hpp"

#include "swaplab/optim/tensor.hpp"
#include "swaplab/sim/buffer.hpp"

#include <cstring>

namespace swaplab::optim {
namespace {

class AccountedHostStorage : public TensorStorage {
  public:
    AccountedHostStorage(sim::Device& device, std::uint64_t bytes, std::string_view tag)
        : buffer_(device, bytes, tag) {}

    sim::MemoryKind kind() const noexcept override { return sim::MemoryKind::host; }
    std::uint64_t bytes() const noexcept override { return buffer_.bytes().size(); }
    std::byte* data() const noexcept override {
        return bytes() == 0 ? nullptr : buffer_.bytes().data();
    }

    void read(std::uint64_t offset_bytes, std::span<std::byte> out) const override {
        check_range(offset_bytes, out.size(), bytes());
        if (!out.empty()) {
            std::memmove(out.data(), data() + offset_bytes, out.size());
        }
    }

    void write(std::uint64_t offset_bytes, std::span<const std::byte> in) override {
        check_range(offset_bytes, in.size(), bytes());
        if (!in.empty()) {
            std::memmove(data() + offset_bytes, in.data(), in.size());
        }
    }

  private:
    sim::HostBuffer buffer_;
};

class PinnedStorage : public TensorStorage {
  public:
    PinnedStorage(sim::Device& device, std::uint64_t bytes, std::string_view tag)
        : buffer_(device, bytes, tag) {}

    sim::MemoryKind kind() const noexcept override { return sim::MemoryKind::pinned; }
    std::uint64_t bytes() const noexcept override { return buffer_.bytes(); }
    std::byte* data() const noexcept override { return buffer_.data(); }

    void read(std::uint64_t offset_bytes, std::span<std::byte> out) const override {
        check_range(offset_bytes, out.size(), bytes());
        if (!out.empty()) {
            const auto scope = buffer_.read(offset_bytes, out.size());
            std::memmove(out.data(), scope.bytes().data(), out.size());
        }
    }

    void write(std::uint64_t offset_bytes, std::span<const std::byte> in) override {
        check_range(offset_bytes, in.size(), bytes());
        if (!in.empty()) {
            const auto scope = buffer_.write(offset_bytes, in.size());
            std::memmove(scope.bytes().data(), in.data(), in.size());
        }
    }

  private:
    sim::PinnedBuffer buffer_;
};

}  // namespace

std::shared_ptr<TensorStorage> make_host_storage(sim::Device& device, std::uint64_t bytes,
                                                 std::string_view tag) {
    return std::make_shared<AccountedHostStorage>(device, bytes, tag);
}

std::shared_ptr<TensorStorage> make_pinned_storage(sim::Device& device, std::uint64_t bytes,
                                                   std::string_view tag) {
    return std::make_shared<PinnedStorage>(device, bytes, tag);
}

}  // namespace swaplab::optim
