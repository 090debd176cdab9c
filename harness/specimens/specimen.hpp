#pragma once

/// SwapAdamW as it was first published, written plainly, with switches that break it as reported.

#include "specimens/defects.hpp"

#include "swaplab/optim/adamw_kernel.hpp"
#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/device.hpp"
#include "swaplab/sim/stream.hpp"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace swaplab::harness {

/// exp_avg, exp_avg_sq, max_exp_avg_sq; the last is undefined without amsgrad.
using Moments = std::array<optim::Tensor, 3>;
inline constexpr std::array<const char*, 3> moment_keys{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};

/// optimizer.state[p] of one parameter.
struct ParamState {
    optim::Tensor step;  ///< 0-dim fp32 in host memory
    Moments moments;
};

/// Loads are agreed on by all ranks in four parts, like SwapAdamW's: check, read, cast, set. Where
/// one rank fails, all throw its kind of error; nothing has changed before "set", but what "read"
/// fills through a live template, and what is half overwritten is marked torn on all ranks.
///
/// Construction and add_param_group() are each rank's own, as in the original: a rank that fails
/// there fails alone, and the others get RankLost from their next collective. So is step(), which
/// marks nothing when it fails.
class Specimen final : public optim::Optimizer {
  public:
    Specimen(sim::Device& device, sim::Communicator& communicator,
             std::vector<optim::ParamGroup> groups, DefectSet defects);

    void step() override;
    [[nodiscard]] optim::StateDict state_dict(optim::Snapshot how) const override;
    [[nodiscard]] optim::StateDict step_state() const override;
    [[nodiscard]] std::vector<optim::Mismatch> check(
        const optim::StateSource& source, const optim::LoadOptions& options) const override;
    void load(optim::StateSource& source, const optim::LoadOptions& options) override;
    void load_state_dict(const optim::StateDict& saved) override;
    [[nodiscard]] std::vector<optim::ParamGroup>& param_groups() noexcept override;
    void add_param_group(optim::ParamGroup group) override;
    void init_state() override;
    [[nodiscard]] bool torn() const noexcept override { return state_torn_ || parameters_torn_; }
    [[nodiscard]] bool parameters_torn() const noexcept override { return parameters_torn_; }
    void set_parameters_torn(bool torn) noexcept override {
        parameters_torn_ = torn && !defects_.has(Defect::tear_unmarked);
    }

  private:
    /// What a load is about to put into one parameter's state.
    struct Incoming {
        optim::Tensor step;  ///< undefined: 0
        Moments moments;     ///< undefined: zero
    };

    // specimen.cpp: groups and state
    void refuse_group(const optim::ParamGroup& group) const;
    void create_state(const optim::ParamGroup& group, const optim::Parameter& param);
    [[nodiscard]] optim::Tensor zero_moment(const optim::Parameter& param, std::size_t kind) const;
    [[nodiscard]] optim::Tensor new_moment(const optim::Parameter& param, std::size_t kind,
                                           const optim::Tensor& like) const;
    void zero_state();
    [[nodiscard]] optim::StateDict pack(const std::vector<optim::ParamGroup>& groups,
                                        bool as_step_reads) const;
    [[nodiscard]] const ParamState* find_state(const optim::Parameter& param) const;
    [[nodiscard]] const Moments& moments_of_step(const std::string& name) const;

    // step.cpp
    void update(const optim::Parameter& param, const optim::AdamWOptions& options);
    void launch(const optim::Parameter& param, const optim::AdamWScalars& scalars,
                const std::array<std::byte*, 3>& moments);
    void advance_group(const optim::ParamGroup& group);

    // load_check.cpp
    [[nodiscard]] std::vector<optim::Mismatch> check_dict(const optim::StateDict& saved) const;
    /// What is wrong with the saved value of one moment; empty: nothing.
    [[nodiscard]] std::string moment_fault(const optim::Parameter& param,
                                           const optim::Value* value) const;
    void check_groups(const std::vector<optim::Dict>& saved,
                      std::vector<optim::Mismatch>& found) const;

    // load.cpp
    void mark_torn() noexcept { state_torn_ = !defects_.has(Defect::tear_unmarked); }
    void fill(optim::StateDict& into, optim::StateSource& source,
              const optim::LoadOptions& options) const;
    void adopt(const std::string& purpose, const optim::StateDict& saved,
               const optim::LoadOptions& options);
    [[nodiscard]] std::vector<std::pair<const optim::Parameter*, Incoming>> cast_all(
        const optim::StateDict& saved) const;
    [[nodiscard]] Incoming cast(const optim::Parameter& param, const optim::Dict* saved) const;
    void settle(const optim::Parameter& param, ParamState& state, Incoming& incoming);
    void settle_moment(const optim::Parameter& param, std::size_t kind, optim::Tensor& live,
                       optim::Tensor& incoming);
    void adopt_groups(const std::vector<optim::Dict>& saved);
    /// The name under which `saved` holds the state of each parameter, in group order.
    [[nodiscard]] std::vector<std::string> saved_names(const optim::StateDict& saved) const;

    sim::Device* device_;
    sim::Communicator* communicator_;
    DefectSet defects_;
    mutable sim::Stream stream_;
    /// With defects that free or download on a stream of its own.
    std::optional<sim::Stream> other_stream_;
    /// What param_groups() shows. Like PyTorch's, the object may be replaced by a load.
    std::shared_ptr<std::vector<optim::ParamGroup>> groups_;
    /// What step() walks: the same object, or with stale_groups the one of before the first load.
    std::shared_ptr<std::vector<optim::ParamGroup>> step_groups_;
    std::map<std::string, ParamState> state_;
    /// The moments of construction: what step() uses with stale_moments.
    std::map<std::string, Moments> first_moments_;
    /// Device copies that step() made and has not given back.
    std::vector<sim::DeviceBuffer> slots_;
    bool state_torn_ = false;
    bool parameters_torn_ = false;
};

/// The value of a step tensor.
[[nodiscard]] std::int64_t step_value(const optim::Tensor& step);
void set_step(const optim::Tensor& step, std::int64_t value);

}  // namespace swaplab::harness
