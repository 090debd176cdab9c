#pragma once

/// Plain AdamW with its moments on the device: the twin that SwapAdamW must equal bit for bit.

#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/device.hpp"

#include <memory>
#include <vector>

namespace swaplab::optim {

/// AdamW as torch.optim.AdamW keeps its state: moments in device memory, created with a parameter's
/// first gradient (step() or load), the same update bits as SwapAdamW. One kernel launch per
/// parameter on one stream. Loads check like SwapAdamW. Threads, life times: as SwapAdamW.
class AdamW : public Optimizer {
  public:
    AdamW(sim::Device& device, sim::Communicator& communicator, std::vector<ParamGroup> groups);
    ~AdamW() override;

    void step() override;
    [[nodiscard]] StateDict state_dict(Snapshot how = Snapshot::owned) const override;
    [[nodiscard]] std::vector<Mismatch> check(const StateSource& source,
                                              const LoadOptions& options) const override;
    void load(StateSource& source, const LoadOptions& options = {}) override;
    void load_state_dict(const StateDict& saved) override;
    [[nodiscard]] std::vector<ParamGroup>& param_groups() noexcept override;
    void add_param_group(ParamGroup group) override;
    /// Zero moments and step 0 for parameters that have no state yet.
    void init_state() override;
    [[nodiscard]] bool torn() const noexcept override;
    [[nodiscard]] bool parameters_torn() const noexcept override;
    void set_parameters_torn(bool torn) noexcept override;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace swaplab::optim
