#pragma once

/// One rank of one process of a story: its device, parameters and optimizer, and what its steps do.

#include "scenario/faults.hpp"
#include "scenario/gradient_file.hpp"
#include "scenario/record.hpp"
#include "scenario/saves.hpp"

#include "swaplab/harness/train_engine.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/stream.hpp"

#include <map>
#include <memory>
#include <vector>

namespace swaplab::harness::scenario {

/// What all ranks and processes of a run share.
struct Stage {
    const Run* run = nullptr;
    std::string directory;  ///< of the scenario file
    Storage* storage = nullptr;
    Saves* saves = nullptr;
    Records* records = nullptr;
    std::map<std::string, GradientFile>* gradient_files = nullptr;
};

/// Lives outside the rank's fiber, so that a rank that was trapped can still be looked at. Threads:
/// the one that runs the world.
class RankPlayer {
  public:
    RankPlayer(const Stage& stage, const SetUp& set_up, int rank, std::uint64_t seed);
    ~RankPlayer();
    RankPlayer(const RankPlayer&) = delete;
    RankPlayer& operator=(const RankPlayer&) = delete;

    /// Makes parameters and optimizer. With `record`, measures that as a step (restart).
    void build(sim::Communicator& communicator, StepRecord* record);
    /// Does step `index` and records it. Returns false when the story ends here.
    [[nodiscard]] bool play(std::size_t index);
    /// Destroys everything but the device, then returns its findings of that.
    [[nodiscard]] std::vector<sim::Finding> tear_down();

    [[nodiscard]] const RankState& state() const noexcept { return state_; }
    [[nodiscard]] std::uint64_t execution_digest() const { return device_->execution_digest(); }
    /// Findings that no step has recorded yet (of a rank that was trapped).
    [[nodiscard]] std::vector<sim::Finding> new_findings();

  private:
    void measured(StepRecord& record, const std::function<void()>& work);
    void perform(const Step& step);
    void train(const TrainStep& step);
    void train_once(const TrainStep& step, std::int64_t nth);
    void backward(const optim::ParameterPtr& param, const TrainStep& step);
    std::vector<float> gradient(const optim::Parameter& param, const TrainStep& step,
                                const std::vector<std::int64_t>& positions) const;
    void save(const SaveStep& step);
    void load(const LoadStep& step);
    void load_dict(const LoadStep& step);
    void load_optimizer(const LoadStep& step, const Saved& saved);
    void load_params(const Saved& saved);
    void add_group(const AddGroupStep& step);
    void remember(const Step& step);
    [[nodiscard]] optim::ParameterPtr make_parameter(const ParamSpec& spec);
    void write(const optim::Tensor& to, std::vector<float> values, const char* kernel);
    [[nodiscard]] optim::ParamGroup make_group(const GroupSpec& spec);
    [[nodiscard]] TrainEngine& engine(Checks checks);

    const Stage& stage_;
    SetUp set_up_;
    int rank_;
    std::unique_ptr<sim::SimulatedDevice> device_;
    FaultPlan plan_;
    std::unique_ptr<sim::Device> faulty_;
    RankStorage storage_;
    sim::Communicator* communicator_ = nullptr;
    std::unique_ptr<sim::Stream> stream_;
    std::vector<optim::ParameterPtr> params_;
    std::unique_ptr<optim::Optimizer> optimizer_;
    std::map<Checks, std::unique_ptr<TrainEngine>> engines_;
    History history_;
    RankState state_;
    std::size_t findings_seen_ = 0;
};

}  // namespace swaplab::harness::scenario
