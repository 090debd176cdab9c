#include "scenario/play/record_wire.hpp"

#include "swaplab/sim/mutant.hpp"

#include <cstring>
#include <variant>

namespace swaplab::harness::scenario {

void Wire::one(std::string& text) {
    if (reading_) {
        text = message_.text();
    } else {
        message_.put(std::string_view(text));
    }
}

void Wire::one(std::vector<std::byte>& bytes) {
    if (reading_) {
        const std::string text = message_.text();
        bytes.resize(text.size());
        std::memcpy(bytes.data(), text.data(), text.size());
    } else {
        message_.put(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
}

void Wire::one(double& value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    one(bits);
    std::memcpy(&value, &bits, sizeof bits);
}

void Wire::one(const std::byte*& identity) {
    auto number = reinterpret_cast<std::uintptr_t>(identity);
    one(number);
    identity = reinterpret_cast<const std::byte*>(number);
}

void Wire::one(optim::Placement& placement) {
    (*this)(placement.kind, placement.dim, placement.split_factor);
}

void Wire::one(optim::ShardSpec& shard) {
    (*this)(shard.global_shape, shard.mesh, shard.placements, shard.mesh_ranks);
}

void Wire::one(optim::Tensor& tensor) {
    auto dtype = tensor.dtype();
    auto shape = tensor.local_shape();
    auto shard = tensor.shard();
    auto bytes = reading_ ? std::vector<std::byte>() : tensor.to_bytes();
    (*this)(dtype, shape, shard, bytes);
    if (reading_) {
        auto storage = optim::make_host_storage(bytes.size());
        if (!SWAPLAB_MUTANT("journal.dict_bytes_left_out")) {
            storage->write(0, bytes);
        }
        tensor = optim::Tensor(dtype, std::move(shape), std::move(storage), std::move(shard));
    }
}

template <std::size_t I>
void Wire::alternative(std::size_t index, optim::Value::Data& data) {
    if constexpr (I < std::variant_size_v<optim::Value::Data>) {
        if (index != I) {
            return alternative<I + 1>(index, data);
        }
        using T = std::variant_alternative_t<I, optim::Value::Data>;
        T& value = reading_ ? data.emplace<I>() : std::get<I>(data);
        if constexpr (std::is_same_v<T, optim::BigInt>) {
            one(value.decimal);
        } else if constexpr (std::is_same_v<T, optim::PyBytes>) {
            one(value.data);
        } else if constexpr (std::is_same_v<T, optim::List> || std::is_same_v<T, optim::Tuple>) {
            one(value.items);
        } else if constexpr (std::is_same_v<T, optim::Opaque>) {
            (*this)(value.class_name, value.position);
        } else if constexpr (!std::is_same_v<T, optim::None>) {
            one(value);
        }
    }
}

void Wire::one(optim::Value& value) {
    std::size_t index = value.data().index();
    one(index);
    alternative(index, value.data());
}

void Wire::one(optim::Dict& dict) {
    (*this)(dict.items, dict.ordered_dict);
}

void Wire::one(sim::ErrorField& field) {
    (*this)(field.name, field.value);
}

void Wire::one(sim::Finding& finding) {
    (*this)(finding.kind, finding.text, finding.fields);
}

void Wire::one(sim::TraceEvent& event) {
    (*this)(event.operation, event.stream, event.tag, event.offset_bytes, event.bytes,
            event.direction);
}

void Wire::one(StorageOperation& operation) {
    (*this)(operation.operation, operation.path, operation.other_path, operation.offset_bytes,
            operation.bytes);
}

void Wire::one(Bytes2& bytes) {
    one(bytes.requested);
    if (!SWAPLAB_MUTANT("journal.rounded_left_out")) {
        one(bytes.rounded);
    }
}

void Wire::one(OrderChoice& choice) {
    (*this)(choice.taken, choice.count);
}

void Wire::one(MemoryFigures& figures) {
    (*this)(figures.before, figures.peak, figures.now, figures.tags_before, figures.tags_at_peak,
            figures.tags_now);
}

void Wire::one(StepError& error) {
    (*this)(error.kind, error.fields, error.text);
}

void Wire::one(UnitValues& units) {
    (*this)(units.params, units.grads, units.moments, units.largest, units.slot, units.ring,
            units.chunk);
}

void Wire::one(History& history) {
    (*this)(history.process, history.steps, history.known, history.training_steps);
}

void Wire::one(CapturedTensor& tensor) {
    (*this)(tensor.dtype, tensor.local_shape, tensor.global_shape, tensor.shard, tensor.bytes,
            tensor.memory, tensor.address);
}

void Wire::one(CapturedView& view) {
    (*this)(view.state, view.groups, view.problem);
}

void Wire::one(RankState& state) {
    (*this)(state.params, state.views, state.torn);
}

void Wire::one(GlobalTensor& tensor) {
    (*this)(tensor.dtype, tensor.shape, tensor.bytes, tensor.shard, tensor.problem);
}

void Wire::one(GlobalView& view) {
    (*this)(view.state, view.groups, view.problem);
}

void Wire::one(GlobalState& state) {
    (*this)(state.params, state.views);
}

void Wire::one(CoverRow& row) {
    (*this)(row.param, row.key, row.elements, row.missing, row.repeated);
}

void Wire::one(FileRow& row) {
    (*this)(row.name, row.bytes, row.sha256);
}

void Wire::one(SavedContent& content) {
    (*this)(content.problem, content.state, content.cover, content.files);
}

void Wire::one(LookedAt& looked_at) {
    (*this)(looked_at.directories, looked_at.dicts);
}

void Wire::one(Saved& saved) {
    (*this)(saved.via, saved.has_model, saved.has_optimizer, saved.history, saved.dict.params,
            saved.dict.state.state, saved.dict.state.param_groups);
}

void Wire::one(StepRecord& record) {
    (*this)(record.reached, record.ended, record.error, record.fault_happened, record.fault_passes,
            record.too_slow, record.spent_ms, record.memory, record.worst, record.occupied,
            record.reserved, record.trace, record.storage, record.findings, record.before,
            record.after, record.units, record.history);
}

}  // namespace swaplab::harness::scenario
