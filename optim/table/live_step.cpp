#include "table/param_table.hpp"
#include "tensor/storage_range.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

namespace swaplab::optim {
namespace {

/// The counter is an int64; only reading and writing see a float32.
class StepStorage : public TensorStorage {
  public:
    StepStorage(std::shared_ptr<Steps> steps, ParamId id) : steps_(std::move(steps)), id_(id) {}

    sim::MemoryKind kind() const noexcept override { return sim::MemoryKind::host; }
    std::uint64_t bytes() const noexcept override { return sizeof(float); }
    std::byte* data() const noexcept override {
        return reinterpret_cast<std::byte*>(&(*steps_)[id_]);
    }

    void read(std::uint64_t offset_bytes, std::span<std::byte> out) const override {
        check_range(offset_bytes, out.size(), bytes());
        const auto value = static_cast<float>((*steps_)[id_]);
        std::memcpy(out.data(), reinterpret_cast<const std::byte*>(&value) + offset_bytes,
                    out.size());
    }

    void write(std::uint64_t offset_bytes, std::span<const std::byte> in) override {
        check_range(offset_bytes, in.size(), bytes());
        auto value = static_cast<float>((*steps_)[id_]);
        std::memcpy(reinterpret_cast<std::byte*>(&value) + offset_bytes, in.data(), in.size());
        if (!(value >= 0.0F && value <= static_cast<float>(step_max)) ||
            std::trunc(value) != value) {
            throw sim::ArgumentError(
                fmt::format("a step must be a whole number from 0 to {}, found {}", step_max,
                            value),
                {{"key", "step"}, {"found", fmt::format("{}", value)}});
        }
        (*steps_)[id_] = static_cast<std::int64_t>(value);
    }

  private:
    std::shared_ptr<Steps> steps_;
    ParamId id_;
};

}  // namespace

Tensor live_step(std::shared_ptr<Steps> steps, ParamId id) {
    return {DType::float32, {}, std::make_shared<StepStorage>(std::move(steps), id)};
}

}  // namespace swaplab::optim
