#include "swaplab/optim/swap_adamw.hpp"

#include "load/apply_moments.hpp"
#include "load/load_plan.hpp"
#include "swap/live_moment.hpp"
#include "swap/swap_state.hpp"
#include "table/table_dict.hpp"

#include "swaplab/sim/agreement.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <utility>

namespace swaplab::optim {
namespace {

void check_swap_options(const SwapAdamWOptions& options) {
    if (options.bucket_elements <= 0 || options.slots <= 0) {
        throw sim::ArgumentError(
            fmt::format("bucket_elements and slots must be positive, found {} and {}",
                        options.bucket_elements, options.slots),
            {{"bucket_elements", std::to_string(options.bucket_elements)},
             {"slots", std::to_string(options.slots)}});
    }
}

}  // namespace

SwapAdamW::State::Growth SwapAdamW::State::grow(
    const std::vector<FlatParameter>& parameters) const {
    Growth growth{plan, nullptr};
    const std::uint64_t bytes =
        growth.plan.append(parameters, arenas.size(), options.bucket_elements);
    growth.arena = std::make_shared<sim::PinnedBuffer>(device, bytes, "moments");
    return growth;
}

void SwapAdamW::State::commit(Growth growth) {
    plan = std::move(growth.plan);
    plan.generation = table->generation();
    arenas.push_back(std::move(growth.arena));
}

std::vector<Tensor> SwapAdamW::State::moments(ParamId id) const {
    const Tensor& data = table->parameter(id).data;
    const std::int64_t kinds = table->amsgrad(id) ? 3 : 2;
    std::vector<Tensor> out;
    for (std::int64_t kind = 0; kind < kinds; ++kind) {
        std::vector<ArenaPiece> pieces;
        for (const SegmentRef& ref : plan.segments_of[id]) {
            const Bucket& bucket = plan.buckets[ref.bucket];
            const BucketSegment& part = bucket.segments[ref.segment];
            pieces.push_back(
                {arenas[bucket.arena],
                 bucket.arena_offset_bytes + bucket.offset_of(kind, part.bucket_offset_elements),
                 static_cast<std::uint64_t>(part.count_elements) * sizeof(float)});
        }
        out.emplace_back(DType::float32, data.local_shape(),
                         make_piecewise_storage(std::move(pieces)), data.shard());
    }
    return out;
}

SwapAdamW::SwapAdamW(sim::Device& device, sim::Communicator& communicator,
                     std::vector<ParamGroup> groups, const SwapAdamWOptions& options) {
    sim::agree(communicator, "SwapAdamW::SwapAdamW", [&] {
        check_swap_options(options);
        state_ = std::make_unique<State>(device, communicator, options);
        state_->table = std::make_unique<ParamTable>(communicator.rank(), std::move(groups));
        state_->commit(state_->grow(flat_parameters(state_->table->groups())));
    });
}

SwapAdamW::~SwapAdamW() = default;

StateDict SwapAdamW::state_dict(Snapshot how) const {
    refuse_torn({state_->torn.state, false}, state_->table->rank(), "state_dict");
    return make_state_dict(
        *state_->table, [&](ParamId id) { return state_->moments(id); }, how);
}

std::vector<Mismatch> SwapAdamW::check(const StateSource& source,
                                       const LoadOptions& options) const {
    return check_source(source, options, *state_->table);
}

void SwapAdamW::load(StateSource& source, const LoadOptions& options) {
    State& state = *state_;
    const LoadCall call{"SwapAdamW::load", source, options, state.communicator};
    const LoadPlan plan = make_load_plan(call, *state.table);
    if (options.load_states) {
        std::vector<MomentLoad> loads;
        for (ParamId id = 0; id < state.table->size(); ++id) {
            const std::vector<std::string> keys = state.table->moment_keys(id);
            const std::vector<Tensor> moments = state.moments(id);
            for (std::size_t kind = 0; kind < keys.size(); ++kind) {
                loads.push_back({state.table->parameter(id).name, keys[kind], moments[kind],
                                 plan.steps[id].has_value()});
            }
        }
        apply_moments(call, loads, state.device, state.torn.state);
        apply_steps(plan, *state.table);
    }
    apply_groups(plan, *state.table);
}

void SwapAdamW::load_state_dict(const StateDict& saved) {
    StateDictSource source(saved);
    load(source);
}

std::vector<ParamGroup>& SwapAdamW::param_groups() noexcept {
    return state_->table->groups();
}

void SwapAdamW::add_param_group(ParamGroup group) {
    State& state = *state_;
    State::Growth growth;
    sim::agree(state.communicator, "SwapAdamW::add_param_group", [&] {
        state.table->check_group(group);
        growth = state.grow(flat_parameters({group}));
    });
    state.table->append(std::move(group));
    state.commit(std::move(growth));
}

bool SwapAdamW::torn() const noexcept {
    return state_->torn.any();
}

bool SwapAdamW::parameters_torn() const noexcept {
    return state_->torn.parameters;
}

void SwapAdamW::set_parameters_torn(bool torn) noexcept {
    state_->torn.parameters = torn;
}

std::uint64_t SwapAdamW::slot_bytes() const noexcept {
    return state_->plan.largest_bucket_bytes();
}

std::int64_t SwapAdamW::touched_buckets() const noexcept {
    std::vector<ParamId> ids;
    for (ParamId id = 0; id < state_->table->size(); ++id) {
        if (state_->table->parameter(id).has_grad) {
            ids.push_back(id);
        }
    }
    return static_cast<std::int64_t>(state_->touched(ids).size());
}

std::int64_t SwapAdamW::bucket_count() const noexcept {
    return static_cast<std::int64_t>(state_->plan.buckets.size());
}

}  // namespace swaplab::optim
