#include "load/step_value.hpp"

#include "table/param_table.hpp"

#include <cmath>

namespace swaplab::optim {
namespace {

template <class Number>
Number read_number(StateSource& source, const std::string& fqn, const Tensor& like, int rank) {
    Number number{};
    source.read(fqn, "step", like, rank, 0, std::as_writable_bytes(std::span(&number, 1)));
    return number;
}

}  // namespace

bool is_step_tensor(const SourceEntry& entry) {
    const bool kept = entry.dtype == DType::float32 || entry.dtype == DType::float64 ||
                      entry.dtype == DType::int32 || entry.dtype == DType::int64;
    return kept && numel(entry.global_shape) == 1;
}

std::optional<std::int64_t> step_from(const Value& value) {
    if (const auto* whole = value.get_if<std::int64_t>()) {
        return *whole >= 0 && *whole <= step_max ? std::optional(*whole) : std::nullopt;
    }
    const auto* real = value.get_if<double>();
    if (real == nullptr || !(*real >= 0.0 && *real <= static_cast<double>(step_max)) ||
        std::trunc(*real) != *real) {
        return std::nullopt;
    }
    return static_cast<std::int64_t>(*real);
}

Value read_step(StateSource& source, const std::string& fqn, const SourceEntry& entry, int rank) {
    const Tensor like(entry.dtype, entry.global_shape,
                      make_host_storage(sim::size_of(entry.dtype)));
    switch (entry.dtype) {
        case DType::float64:
            return read_number<double>(source, fqn, like, rank);
        case DType::int32:
            return std::int64_t{read_number<std::int32_t>(source, fqn, like, rank)};
        case DType::int64:
            return read_number<std::int64_t>(source, fqn, like, rank);
        default:
            return static_cast<double>(read_number<float>(source, fqn, like, rank));
    }
}

}  // namespace swaplab::optim
