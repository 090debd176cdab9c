#include "swaplab/optim/adamw.hpp"

#include "kernels/adamw_launch.hpp"
#include "load/apply_moments.hpp"
#include "load/load_plan.hpp"
#include "table/table_dict.hpp"
#include "table/torn_state.hpp"

#include "swaplab/sim/agreement.hpp"
#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/stream.hpp"

#include <optional>
#include <utility>

namespace swaplab::optim {
namespace {

float* floats_of(const Tensor& tensor) {
    return reinterpret_cast<float*>(tensor.storage().data());
}

}  // namespace

struct AdamW::State {
    /// Moments on the device by ParamId; empty before a parameter's first gradient.
    using Moments = std::vector<std::vector<Tensor>>;

    State(sim::Device& on_device, sim::Communicator& among, std::vector<ParamGroup> groups)
        : device(on_device),
          communicator(among),
          table(among.rank(), std::move(groups)),
          stream(on_device, "adamw"),
          moments(table.size()) {}

    [[nodiscard]] std::vector<Tensor> zero_moments(ParamId id) {
        const Parameter& parameter = table.parameter(id);
        std::vector<Tensor> made;
        for (const std::string& key : table.moment_keys(id)) {
            auto storage = make_device_storage(device, parameter.data.local_bytes(), stream,
                                               parameter.name + "." + key);
            if (!SWAPLAB_MUTANT("adamw.zero_fill")) {
                device.fill_async(storage->data(), std::byte{0}, storage->bytes(), stream);
            }
            // Nothing may be pending when a later allocation fails and this one is given back.
            device.synchronize(stream);
            made.emplace_back(DType::float32, parameter.data.local_shape(), std::move(storage),
                              parameter.data.shard());
        }
        return made;
    }

    /// The present moments, with new ones for those of `ids` that have none. Nothing changes when
    /// memory runs out on the way.
    [[nodiscard]] Moments with_state_for(const std::vector<ParamId>& ids) {
        Moments grown = moments;
        for (const ParamId id : ids) {
            if (grown[id].empty()) {
                grown[id] = zero_moments(id);
            }
        }
        return grown;
    }

    void launch(ParamId id) {
        const Parameter& parameter = table.parameter(id);
        KernelSegment segment;
        segment.arrays.param = floats_of(parameter.data);
        segment.arrays.grad = floats_of(parameter.grad);
        segment.arrays.exp_avg = floats_of(moments[id][0]);
        segment.arrays.exp_avg_sq = floats_of(moments[id][1]);
        segment.arrays.max_exp_avg_sq =
            moments[id].size() == 3 ? floats_of(moments[id][2]) : nullptr;
        segment.count = parameter.data.local_numel();
        segment.scalars = adamw_scalars(table.options(id), (*table.steps())[id] + 1);
        if (segment.count > 0) {
            device.launch(make_adamw_kernel({segment}), stream);
        }
    }

    sim::Device& device;
    sim::Communicator& communicator;
    ParamTable table;
    sim::Stream stream;
    Moments moments;
    TornMarks torn;
};

AdamW::AdamW(sim::Device& device, sim::Communicator& communicator, std::vector<ParamGroup> groups) {
    sim::agree(communicator, "AdamW::AdamW",
               [&] { state_ = std::make_unique<State>(device, communicator, std::move(groups)); });
}

AdamW::~AdamW() = default;

void AdamW::step() {
    State& state = *state_;
    refuse_torn(state.torn, state.table.rank(), "step");
    const std::vector<ParamId> stepped = state.table.to_step();
    state.moments = state.with_state_for(stepped);
    try {
        for (const ParamId id : stepped) {
            state.launch(id);
        }
        if (!SWAPLAB_MUTANT("adamw.host_waits")) {
            state.device.synchronize(state.stream);
        }
    } catch (...) {
        state.torn = {true, true};
        throw;
    }
    for (const ParamId id : stepped) {
        ++(*state.table.steps())[id];
    }
}

void AdamW::init_state() {
    State& state = *state_;
    std::vector<ParamId> all;
    for (ParamId id = 0; id < state.table.size(); ++id) {
        all.push_back(id);
    }
    state.moments = state.with_state_for(all);
}

StateDict AdamW::state_dict(Snapshot how) const {
    refuse_torn({state_->torn.state, false}, state_->table.rank(), "state_dict");
    return make_state_dict(
        state_->table, [&](ParamId id) { return state_->moments[id]; }, how);
}

std::vector<Mismatch> AdamW::check(const StateSource& source, const LoadOptions& options) const {
    return check_source(source, options, state_->table);
}

void AdamW::load(StateSource& source, const LoadOptions& options) {
    State& state = *state_;
    const LoadCall call{"AdamW::load", source, options, state.communicator};
    const LoadPlan plan = make_load_plan(call, state.table);
    if (options.load_states) {
        std::vector<ParamId> restored;
        for (ParamId id = 0; id < state.table.size(); ++id) {
            if (plan.steps[id]) {
                restored.push_back(id);
            }
        }
        State::Moments next;
        call.agree("allocate moments", [&] { next = state.with_state_for(restored); });
        std::vector<MomentLoad> loads;
        for (const ParamId id : restored) {
            const std::vector<std::string> keys = state.table.moment_keys(id);
            for (std::size_t kind = 0; kind < keys.size(); ++kind) {
                loads.push_back({state.table.parameter(id).name, keys[kind], next[id][kind]});
            }
        }
        apply_moments(call, loads, state.device, state.torn.state);
        for (ParamId id = 0; id < state.table.size(); ++id) {
            state.moments[id] = plan.steps[id] ? std::move(next[id]) : std::vector<Tensor>{};
        }
        apply_steps(plan, state.table);
    }
    apply_groups(plan, state.table);
}

void AdamW::load_state_dict(const StateDict& saved) {
    StateDictSource source(saved);
    load(source);
}

std::vector<ParamGroup>& AdamW::param_groups() noexcept {
    return state_->table.groups();
}

void AdamW::add_param_group(ParamGroup group) {
    State& state = *state_;
    sim::agree(state.communicator, "AdamW::add_param_group",
               [&] { state.table.check_group(group); });
    state.table.append(std::move(group));
    state.moments.resize(state.table.size());
}

bool AdamW::torn() const noexcept {
    return state_->torn.any();
}

bool AdamW::parameters_torn() const noexcept {
    return state_->torn.parameters;
}

void AdamW::set_parameters_torn(bool torn) noexcept {
    state_->torn.parameters = torn;
}

}  // namespace swaplab::optim
