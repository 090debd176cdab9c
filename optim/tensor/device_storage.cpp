#include "tensor/storage_range.hpp"

#include "swaplab/optim/tensor.hpp"
#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <cstring>

namespace swaplab::optim {
namespace {

using sim::CopyDirection;

class DeviceStorage : public TensorStorage {
  public:
    DeviceStorage(sim::Device& device, std::uint64_t bytes, sim::StreamRef stream,
                  std::string_view tag, std::uint64_t staging_bytes)
        : device_(device),
          stream_(stream),
          staging_bytes_(staging_bytes),
          buffer_(device, bytes, stream, tag) {}

    sim::MemoryKind kind() const noexcept override { return sim::MemoryKind::device; }
    std::uint64_t bytes() const noexcept override { return buffer_.bytes(); }
    std::byte* data() const noexcept override { return buffer_.data(); }

    void read(std::uint64_t offset_bytes, std::span<std::byte> out) const override {
        check_range(offset_bytes, out.size(), bytes());
        sim::PinnedBuffer staging = staging_for(out.size());
        for (std::uint64_t done = 0; done < out.size(); done += staging.bytes()) {
            const std::uint64_t count = std::min(staging.bytes(), out.size() - done);
            device_.copy_async(staging.data(), buffer_.data() + offset_bytes + done, count,
                               CopyDirection::device_to_host, stream_);
            if (!SWAPLAB_MUTANT("tensor.read_waits")) {
                device_.synchronize(stream_);
            }
            const auto scope = staging.read(0, count);
            std::memcpy(out.data() + done, scope.bytes().data(), count);
        }
    }

    void write(std::uint64_t offset_bytes, std::span<const std::byte> in) override {
        check_range(offset_bytes, in.size(), bytes());
        sim::PinnedBuffer staging = staging_for(in.size());
        for (std::uint64_t done = 0; done < in.size(); done += staging.bytes()) {
            const std::uint64_t count = std::min(staging.bytes(), in.size() - done);
            {
                const auto scope = staging.write(0, count);
                std::memcpy(scope.bytes().data(), in.data() + done, count);
            }
            device_.copy_async(buffer_.data() + offset_bytes + done, staging.data(), count,
                               CopyDirection::host_to_device, stream_);
            if (!SWAPLAB_MUTANT("tensor.write_waits")) {
                device_.synchronize(stream_);
            }
        }
    }

  private:
    sim::PinnedBuffer staging_for(std::uint64_t bytes) const {
        return {device_, std::min(bytes, staging_bytes_), "staging"};
    }

    sim::Device& device_;
    sim::StreamRef stream_;
    std::uint64_t staging_bytes_;
    sim::DeviceBuffer buffer_;
};

}  // namespace

std::shared_ptr<TensorStorage> make_device_storage(sim::Device& device, std::uint64_t bytes,
                                                   sim::StreamRef stream, std::string_view tag,
                                                   std::uint64_t staging_bytes) {
    SWAPLAB_ASSERT(staging_bytes > 0, "a device storage needs staging memory");
    return std::make_shared<DeviceStorage>(device, bytes, stream, tag, staging_bytes);
}

}  // namespace swaplab::optim
