#pragma once

/// One rank of one process of a story: its device, parameters and optimizer, and what its steps do.

#include "scenario/play/faults.hpp"
#include "scenario/play/gradient_file.hpp"
#include "scenario/play/held_memory.hpp"
#include "scenario/play/orders.hpp"
#include "scenario/play/rank_record.hpp"

#include "swaplab/harness/train_engine.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/device_trace.hpp"
#include "swaplab/sim/stream.hpp"

#include <map>
#include <memory>
#include <vector>

namespace swaplab::harness::scenario {

/// What all ranks and processes of a run share, unchanged by any of them but for files.
struct Stage {
    const Run* run = nullptr;
    std::string directory;  ///< of the scenario file
    Storage* storage = nullptr;
};

/// Of every rank's device, but for the rank.
[[nodiscard]] sim::SimulatedDeviceOptions device_options(const SetUp& set_up, std::uint64_t seed);

/// Lives outside the rank's fiber, so that a rank that was trapped can still be looked at. Threads:
/// one at a time.
class RankPlayer {
  public:
    /// `first`: step with which the process begins. `saves`: the rank's own.
    RankPlayer(const Stage& stage, std::size_t first, int rank, std::uint64_t seed, Saves& saves);
    ~RankPlayer();
    RankPlayer(const RankPlayer&) = delete;
    RankPlayer& operator=(const RankPlayer&) = delete;

    /// Makes parameters and optimizer. With `record`, measures that as a step (restart).
    void build(sim::Communicator& communicator, StepRecord* record);
    /// Does step `index` and records it. Returns false when the story ends here.
    [[nodiscard]] bool play(std::size_t index, StepRecord& record);
    /// Called when the rank begins a collective: a point where a fault of the step may happen.
    void pass_collective();
    /// Destroys everything but the device, then returns its findings of that.
    [[nodiscard]] std::vector<sim::Finding> tear_down();
    /// After tear_down(): the trace of the device as a file; empty unless the run is traced.
    [[nodiscard]] std::vector<std::byte> trace_file() {
        return recording_ == nullptr
                   ? std::vector<std::byte>()
                   : sim::encode(sim::make_trace(options_, std::move(program_), *device_));
    }

    [[nodiscard]] const RankState& state() const noexcept { return state_; }
    /// With every order: those that were taken so far.
    [[nodiscard]] const std::vector<OrderChoice>& choices() const noexcept {
        return choices_.taken;
    }
    [[nodiscard]] std::uint64_t execution_digest() const { return device_->execution_digest(); }
    /// Findings that no step has recorded yet (of a rank that was trapped).
    [[nodiscard]] std::vector<sim::Finding> new_findings();

  private:
    /// What faults are put before.
    [[nodiscard]] sim::Device& device() { return recording_ ? *recording_ : *device_; }
    void measured(StepRecord& record, const std::string& verb, const std::function<void()>& work);
    void perform(const Step& step);
    void train(const TrainStep& step);
    void train_once(const TrainStep& step, std::int64_t nth);
    void backward(const optim::ParameterPtr& param, const TrainStep& step);
    std::vector<float> gradient(const optim::Parameter& param, const TrainStep& step,
                                const std::vector<std::int64_t>& positions);
    void save(const SaveStep& step);
    void load(const LoadStep& step);
    void load_dict(const LoadStep& step);
    void load_optimizer(const LoadStep& step, const SavedDict& dict);
    void load_params(const SavedDict& dict);
    void add_group(const AddGroupStep& step);
    void remember(std::size_t index);
    [[nodiscard]] optim::ParameterPtr make_parameter(const ParamSpec& spec);
    void write(const optim::Tensor& to, std::vector<float> values, const char* kernel);
    [[nodiscard]] optim::ParamGroup make_group(const GroupSpec& spec);
    [[nodiscard]] TrainEngine& engine(Checks checks);

    const Stage& stage_;
    Saves& saves_;
    SetUp set_up_;
    int rank_;
    sim::SimulatedDeviceOptions options_;
    OrderRecord choices_;
    std::unique_ptr<sim::SimulatedDevice> device_;
    sim::DeviceProgram program_;              ///< of a run that is traced
    std::unique_ptr<sim::Device> recording_;  ///< null in others
    sim::FaultInjector faults_;
    std::unique_ptr<sim::Device> faulty_;
    RankStorage storage_;
    sim::Communicator* communicator_ = nullptr;
    std::unique_ptr<sim::Stream> stream_;
    HeldMemory held_;
    std::vector<optim::ParameterPtr> params_;
    std::unique_ptr<optim::Optimizer> optimizer_;
    std::map<Checks, std::unique_ptr<TrainEngine>> engines_;
    std::map<std::string, GradientFile> gradient_files_;
    History history_;
    RankState state_;
    std::size_t findings_seen_ = 0;
    std::uint64_t late_at_ = 0;  ///< pass at which the fault of this step strikes late; 0: no such
    bool device_lost_ = false;
};

}  // namespace swaplab::harness::scenario
