#include "state_dicts/box_reader.hpp"

#include "swaplab/optim/state_dict.hpp"
#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/mutant.hpp"

#include <algorithm>

namespace swaplab::optim {
namespace {

Box whole_box(const Shape& shape) {
    return {Shape(shape.size(), 0), shape};
}

/// The part of its global tensor that `tensor` is on `rank`; empty when the rank holds nothing.
std::optional<Box> box_of(const Tensor& tensor, int rank) {
    return tensor.shard() ? tensor.shard()->box_of(rank) : whole_box(tensor.local_shape());
}

std::string box_text(const std::optional<Box>& box) {
    return box ? to_string(*box) : "nothing";
}

const Tensor& tensor_of(const StateDict& dict, const std::string& fqn, const std::string& key) {
    const Dict* state = dict.find(fqn);
    const Value* value = state == nullptr ? nullptr : state->find(key);
    const Tensor* tensor = value == nullptr ? nullptr : value->get_if<Tensor>();
    SWAPLAB_ASSERT(tensor != nullptr, fqn + "." + key + " is no tensor of this state dict");
    return *tensor;
}

}  // namespace

std::vector<std::string> StateDictSource::fqns() const {
    std::vector<std::string> names;
    for (const auto& [fqn, entries] : state_dict_.state) {
        names.push_back(fqn);
    }
    return names;
}

std::vector<SourceEntry> StateDictSource::entries(const std::string& fqn) const {
    std::vector<SourceEntry> out;
    const Dict* state = state_dict_.find(fqn);
    if (state == nullptr) {
        return out;
    }
    for (const auto& [key, value] : state->items) {
        SourceEntry entry;
        entry.key = key.get_if<std::string>() ? *key.get_if<std::string>() : repr(key);
        if (const auto* tensor = value.get_if<Tensor>()) {
            entry.is_tensor = true;
            entry.dtype = tensor->dtype();
            entry.global_shape = tensor->global_shape();
            entry.has_shard_metadata = tensor->shard().has_value();
        } else {
            entry.value = value;
        }
        out.push_back(std::move(entry));
    }
    return out;
}

std::vector<Mismatch> StateDictSource::check(const std::string& fqn, const std::string& key,
                                             const Tensor& live, int rank) const {
    const Tensor& saved = tensor_of(state_dict_, fqn, key);
    const std::string expected = to_string(live.global_shape());
    if (!saved.shard()) {
        if (saved.local_shape() == live.global_shape() || !live.shard() ||
            SWAPLAB_MUTANT("load.shard_metadata")) {
            return {};
        }
        return {{rank,
                 fqn,
                 key,
                 expected,
                 to_string(saved.local_shape()),
                 "no complete shard metadata: a plain tensor of another shape than the global one",
                 {}}};
    }
    const std::optional<Box> saved_box = saved.shard()->box_of(rank);
    const Shape held = saved_box ? saved_box->sizes : saved.local_shape();
    if (saved.local_shape() != held && !SWAPLAB_MUTANT("load.own_box")) {
        return {{rank,
                 fqn,
                 key,
                 to_string(held),
                 to_string(saved.local_shape()),
                 "the tensor is not the part that its shard metadata names",
                 {}}};
    }
    const std::optional<Box> live_box = box_of(live, rank);
    if (saved.global_shape() == live.global_shape() && saved_box != live_box &&
        !SWAPLAB_MUTANT("load.same_box")) {
        return {{rank,
                 fqn,
                 key,
                 box_text(live_box),
                 box_text(saved_box),
                 "a state dict holds this rank's own shard only and cannot be resharded",
                 {}}};
    }
    return {};
}

void StateDictSource::read(const std::string& fqn, const std::string& key, const Tensor& live,
                           int rank, std::uint64_t offset_bytes, std::span<std::byte> out) {
    const Tensor& saved = tensor_of(state_dict_, fqn, key);
    const std::optional<Box> box = box_of(live, rank);
    if (saved.shard() || !live.shard() || !box) {
        saved.storage().read(offset_bytes, out);
    } else {
        read_box(saved, *box, offset_bytes, out);
    }
}

}  // namespace swaplab::optim
