#include "scenario/play/state.hpp"

#include "scenario/play/seeded_values.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace swaplab::harness::scenario {
namespace {

using optim::Dict;
using optim::Tensor;
using optim::Value;

/// Adam's step may be a tensor, a float or an int: one meaning.
std::optional<Tensor> as_tensor(const std::string& key, const Value& value) {
    if (const auto* tensor = value.get_if<Tensor>()) {
        return *tensor;
    }
    if (key == "step") {
        if (const auto* number = value.get_if<double>()) {
            return optim::make_scalar(static_cast<float>(*number));
        }
        if (const auto* number = value.get_if<std::int64_t>()) {
            return optim::make_scalar(static_cast<float>(*number));
        }
    }
    return std::nullopt;
}

template <class Visit>
void each_tensor(const Dict& dict, const Visit& visit) {
    for (const std::pair<Value, Value>& item : dict.items) {
        const auto* name = item.first.get_if<std::string>();
        const auto tensor = name != nullptr ? as_tensor(*name, item.second) : std::nullopt;
        if (tensor) {
            visit(*name, *tensor);
        }
    }
}

/// Adds one rank's part; says so when it contradicts what is there.
void add_part(GlobalTensor& whole, std::vector<bool>& written, const CapturedTensor& part,
              const optim::Box& box, int rank) {
    const std::uint64_t element = sim::size_of(whole.dtype);
    const auto positions = global_indices(whole.shape, box);
    for (std::size_t i = 0; i < positions.size(); ++i) {
        const auto at = static_cast<std::size_t>(positions[i]);
        std::byte* to = whole.bytes.data() + at * element;
        const std::byte* from = part.bytes.data() + i * element;
        if (written[at] && std::memcmp(to, from, element) != 0 && whole.problem.empty() &&
            !SWAPLAB_MUTANT("judge.replicas_differ")) {
            whole.problem = fmt::format("replicas differ: rank {} at {}", rank,
                                        index_text(whole.shape, positions[i]));
        }
        if (!written[at]) {
            std::memcpy(to, from, element);
            written[at] = true;
        }
    }
}

/// `of_param`: how the parameter is spread, for moments without metadata of their own.
GlobalTensor assemble_tensor(const std::vector<const CapturedTensor*>& parts,
                             const GlobalTensor* of_param) {
    GlobalTensor whole;
    const auto first = std::find_if(parts.begin(), parts.end(),
                                    [](const CapturedTensor* part) { return part != nullptr; });
    const CapturedTensor& any = **first;
    whole.dtype = any.dtype;
    whole.shard = any.shard;
    whole.shape = any.global_shape;
    const bool scalar = any.local_shape.empty();
    if (!whole.shard && !scalar && of_param != nullptr && of_param->shard) {
        whole.shard = of_param->shard;
        whole.shape = of_param->shape;
    }
    const auto elements = static_cast<std::size_t>(optim::numel(whole.shape));
    whole.bytes.resize(elements * sim::size_of(whole.dtype));
    std::vector<bool> written(elements);
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
        const CapturedTensor* part = parts[rank];
        optim::Box box{optim::Shape(whole.shape.size()), whole.shape};
        if (whole.shard) {
            const auto own = whole.shard->box_of(static_cast<int>(rank));
            if (!own) {
                continue;
            }
            box = *own;
        }
        if (part == nullptr || part->local_shape != box.sizes || part->dtype != whole.dtype) {
            whole.problem = part == nullptr ? fmt::format("rank {} has none", rank)
                                            : fmt::format("rank {} holds {} {}, not {} {}", rank,
                                                          sim::short_name_of(part->dtype),
                                                          optim::to_string(part->local_shape),
                                                          sim::short_name_of(whole.dtype),
                                                          optim::to_string(box.sizes));
            continue;
        }
        add_part(whole, written, *part, box, static_cast<int>(rank));
    }
    const auto gap = std::find(written.begin(), written.end(), false);
    if (gap != written.end() && whole.problem.empty()) {
        whole.problem =
            fmt::format("no rank holds element {}", index_text(whole.shape, gap - written.begin()));
    }
    return whole;
}

template <class Get>
std::vector<std::string> all_names(std::size_t count, const Get& map_of) {
    std::vector<std::string> names;
    for (std::size_t rank = 0; rank < count; ++rank) {
        for (const auto& [name, value] : map_of(rank)) {
            names.push_back(name);
        }
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

GlobalView assemble_view(const std::vector<const RankState*>& ranks, View which,
                         const std::map<std::string, GlobalTensor>& params) {
    GlobalView out;
    const auto view = [&](std::size_t rank) -> const CapturedView& {
        return ranks[rank]->views[static_cast<std::size_t>(which)];
    };
    const auto names = all_names(
        ranks.size(), [&](std::size_t rank) -> auto& { return view(rank).state; });
    for (const std::string& name : names) {
        static const CapturedKeys none;
        const auto keys_of = [&](std::size_t rank) -> const CapturedKeys& {
            const auto found = view(rank).state.find(name);
            return found == view(rank).state.end() ? none : found->second;
        };
        for (const std::string& key : all_names(ranks.size(), keys_of)) {
            std::vector<const CapturedTensor*> parts;
            for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
                const auto found = keys_of(rank).find(key);
                parts.push_back(found == keys_of(rank).end() ? nullptr : &found->second);
            }
            const auto param = params.find(name);
            out.state[name][key] =
                assemble_tensor(parts, param == params.end() ? nullptr : &param->second);
        }
    }
    out.groups = view(0).groups;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (out.problem.empty()) {
            out.problem = view(rank).problem;
        }
    }
    return out;
}

GlobalTensor whole_tensor(const Tensor& tensor) {
    GlobalTensor out;
    out.dtype = tensor.dtype();
    out.shape = tensor.global_shape();
    out.bytes = tensor.to_bytes();
    return out;
}

}  // namespace

CapturedTensor capture_tensor(const Tensor& tensor) {
    CapturedTensor out;
    out.dtype = tensor.dtype();
    out.local_shape = tensor.local_shape();
    out.global_shape = tensor.global_shape();
    out.shard = tensor.shard();
    out.memory = tensor.memory();
    out.address = tensor.storage().data();
    out.bytes = tensor.to_bytes();
    return out;
}

CapturedView capture_view(const optim::StateDict& state_dict) {
    CapturedView out;
    for (const auto& entry : state_dict.state) {
        CapturedKeys& keys = out.state[entry.first];
        each_tensor(entry.second, [&](const std::string& key, const Tensor& tensor) {
            keys[key] = capture_tensor(tensor);
        });
    }
    out.groups = state_dict.param_groups;
    return out;
}

RankState capture_rank(const sim::SimulatedDevice& device,
                       const std::vector<optim::ParameterPtr>& params,
                       const optim::Optimizer& optimizer) {
    RankState out;
    for (const optim::ParameterPtr& param : params) {
        const Tensor& tensor = param->data;
        CapturedTensor& to = out.params[param->name];
        to.dtype = tensor.dtype();
        to.local_shape = tensor.local_shape();
        to.global_shape = tensor.global_shape();
        to.shard = tensor.shard();
        to.memory = tensor.memory();
        to.address = tensor.storage().data();
        to.bytes.resize(tensor.local_bytes());
        if (!to.bytes.empty()) {
            std::memcpy(to.bytes.data(), device.inspect(tensor.storage().data()), to.bytes.size());
        }
    }
    out.torn = optimizer.torn();
    const auto read = [&](View view, const auto& dict_of) {
        CapturedView& to = out.views[static_cast<std::size_t>(view)];
        try {
            to = capture_view(dict_of());
        } catch (const sim::Error& error) {
            to.problem = error.message();
        }
    };
    read(View::step, [&] { return optimizer.step_state(); });
    read(View::state_dict, [&] { return optimizer.state_dict(optim::Snapshot::owned); });
    return out;
}

GlobalState assemble(const std::vector<const RankState*>& ranks) {
    GlobalState out;
    const auto names = all_names(
        ranks.size(), [&](std::size_t rank) -> auto& { return ranks[rank]->params; });
    for (const std::string& name : names) {
        std::vector<const CapturedTensor*> parts;
        for (const RankState* rank : ranks) {
            const auto found = rank->params.find(name);
            parts.push_back(found == rank->params.end() ? nullptr : &found->second);
        }
        out.params[name] = assemble_tensor(parts, nullptr);
    }
    for (const View view : {View::step, View::state_dict}) {
        out.views[static_cast<std::size_t>(view)] = assemble_view(ranks, view, out.params);
    }
    return out;
}

GlobalState global_state(const Value& tree) {
    GlobalState out;
    const auto* root = tree.get_if<Dict>();
    const Value* model = root != nullptr ? root->find("model") : nullptr;
    if (const auto* dict = model != nullptr ? model->get_if<Dict>() : nullptr) {
        each_tensor(*dict, [&](const std::string& name, const Tensor& tensor) {
            out.params[name] = whole_tensor(tensor);
        });
    }
    GlobalView view;
    const Value* optimizer = root != nullptr ? root->find("optimizer") : nullptr;
    if (optimizer != nullptr) {
        try {
            const optim::StateDict state_dict = optim::state_dict_from_value(*optimizer);
            view.groups = state_dict.param_groups;
            for (const auto& entry : state_dict.state) {
                GlobalKeys& keys = view.state[entry.first];
                each_tensor(entry.second, [&](const std::string& key, const Tensor& tensor) {
                    keys[key] = whole_tensor(tensor);
                });
            }
        } catch (const sim::Error& error) {
            view.problem = error.message();
        }
    }
    out.views = {view, view};
    return out;
}

int owner_of(const GlobalTensor& tensor, std::int64_t position) {
    constexpr int max_ranks = 64;
    for (int rank = 0; tensor.shard && rank < max_ranks; ++rank) {
        const auto box = tensor.shard->box_of(rank);
        if (!box || optim::numel(box->sizes) == 0) {
            continue;
        }
        std::int64_t rest = position;
        bool inside = true;
        for (std::size_t d = tensor.shape.size(); d-- > 0;) {
            const std::int64_t at = rest % tensor.shape[d];
            rest /= tensor.shape[d];
            inside = inside && at >= box->offsets[d] && at < box->offsets[d] + box->sizes[d];
        }
        if (inside) {
            return rank;
        }
    }
    return 0;
}

}  // namespace swaplab::harness::scenario
