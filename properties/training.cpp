#include "training.hpp"

#include "property.hpp"
#include "scenario/play/backend.hpp"

#include "swaplab/harness/specimen.hpp"
#include "swaplab/harness/train_engine.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/stream.hpp"
#include "swaplab/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace swaplab::properties {
namespace {

/// nullptr: devices are simulated.
const harness::scenario::Backend* backend = nullptr;

using optim::Box;
using optim::Shape;
using optim::ShardSpec;
using optim::StateDict;
using optim::Tensor;
using sim::MemoryKind;

/// Global row-major indices of the elements of `box`, in local row-major order.
std::vector<std::int64_t> global_indices(const Shape& shape, const Box& box) {
    std::vector<std::int64_t> indices{0};
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        std::vector<std::int64_t> finer;
        for (const std::int64_t index : indices) {
            for (std::int64_t i = 0; i < box.sizes[dim]; ++i) {
                finer.push_back(index * shape[dim] + box.offsets[dim] + i);
            }
        }
        indices = std::move(finer);
    }
    return indices;
}

void write_floats(const Tensor& tensor, const std::vector<float>& values) {
    if (!values.empty()) {
        tensor.storage().write(0, std::as_bytes(std::span(values)));
    }
}

/// The tensors of `state_dict` as ordinary memory that outlives the device.
StateDict detached(StateDict state_dict) {
    for (auto& [fqn, state] : state_dict.state) {
        for (auto& [key, value] : state.items) {
            if (const auto* tensor = value.get_if<Tensor>()) {
                value = tensor->clone_to_host();
            }
        }
    }
    return state_dict;
}

/// What a story saved in memory, of one rank.
struct Saved {
    StateDict optimizer;
    std::vector<std::vector<float>> params;
};

/// What all ranks of a run share.
struct Shared {
    const Story& story;
    const Subject& subject;
    Outcome& outcome;
    std::vector<Saved> saved;
    /// Ranks that hold each element of the global tensors, by parameter and key.
    std::map<std::string, std::map<std::string, std::vector<int>>> holders;
};

/// One rank of a story, before or after the restart.
class Rank {
  public:
    Rank(Shared& shared, sim::Communicator& communicator, sim::SimulatedDevice& device,
         bool restarted)
        : shared_(shared),
          communicator_(communicator),
          device_(device),
          stream_(device, "model"),
          restarted_(restarted) {
        build_model();
        build_optimizer();
        engine_ =
            std::make_unique<harness::TrainEngine>(device_, communicator_, *shared_.outcome.storage,
                                                   params_, *optimizer_, engine_options());
    }

    void train(int step) {
        set_gradients(step);
        const sim::MemoryLedger::Window window(device_.ledger());
        optimizer_->step();
        shared_.outcome.steps.push_back(
            {communicator_.rank(), step, optimizer_->param_groups().size(), restarted_,
             window.before(MemoryKind::device), window.rise(MemoryKind::device),
             window.kept(MemoryKind::device), device_.worst_peak().bytes});
        if (step == 0 && story().last_group_joins_late) {
            optimizer_->add_param_group(take_group(story().groups.size() - 1));
        }
    }

    void save() {
        if (story().via == Story::Via::dcp) {
            engine_->save_dcp("x");
            return;
        }
        Saved& saved = shared_.saved[static_cast<std::size_t>(communicator_.rank())];
        saved.optimizer = detached(optimizer_->state_dict());
        for (const auto& param : params_) {
            saved.params.push_back(optim::to_floats(param->data));
        }
    }

    void load() {
        const sim::MemoryLedger::Window window(device_.ledger());
        const sim::IssuePoint begin = device_.issue_point();
        const std::uint64_t worst_before = device_.worst_peak(sim::Size::requested, begin).bytes;
        if (story().via == Story::Via::dcp) {
            engine_->load_dcp("x");
        } else {
            const Saved& saved = shared_.saved[static_cast<std::size_t>(communicator_.rank())];
            optimizer_->load_state_dict(saved.optimizer);
            for (std::size_t i = 0; i < params_.size(); ++i) {
                write_floats(params_[i]->data, saved.params[i]);
            }
        }
        shared_.outcome.loads.push_back(
            {communicator_.rank(), construction_rise_, window.rise(MemoryKind::device),
             worst_before, device_.worst_peak(sim::Size::requested, begin).bytes,
             window.kept(MemoryKind::device), window.kept(MemoryKind::pinned)});
        if (story().lr_after_load) {
            optimizer_->param_groups()[0].options.lr = *story().lr_after_load;
        }
    }

    /// Puts this rank's part of what the next step would read into the global state.
    void collect() {
        check_groups();
        const StateDict state = optimizer_->step_state();
        for (const auto& param : params_) {
            GlobalState& global = shared_.outcome.state[param->name];
            place(param->name, "param", param->data, global.param);
            const optim::Dict* own = state.find(param->name);
            PROP_TRUE(own != nullptr, param->name + " has no optimizer state");
            for (const auto& [key, value] : own->items) {
                const std::string name = *key.get_if<std::string>();
                const auto* tensor = value.get_if<Tensor>();
                if (tensor == nullptr) {
                    continue;
                }
                if (name == "step") {
                    global.step = static_cast<std::int64_t>(optim::to_floats(*tensor).at(0));
                } else {
                    place(param->name, name, *tensor, global.moments[name]);
                }
            }
        }
    }

  private:
    [[nodiscard]] const Story& story() const { return shared_.story; }

    [[nodiscard]] harness::EngineOptions engine_options() const {
        harness::EngineOptions options;
        options.checks = shared_.subject.checks;
        options.chunk_bytes = 16;  // less than most tensors, so that blocks matter
        return options;
    }

    [[nodiscard]] const Shape& mesh() const {
        return restarted_ ? story().load_mesh : story().mesh;
    }

    [[nodiscard]] ShardSpec spec_of(const StoryParam& param) const {
        return {param.shape, mesh(), placements_of(param, restarted_), {}};
    }

    [[nodiscard]] Tensor device_tensor(const StoryParam& param, const std::string& tag) {
        const ShardSpec spec = spec_of(param);
        const Shape local = spec.box_of(communicator_.rank())->sizes;
        const auto bytes = static_cast<std::uint64_t>(optim::numel(local)) * sizeof(float);
        return {optim::DType::float32, local,
                optim::make_device_storage(device_, bytes, stream_, tag), spec};
    }

    template <class F>
    void fill(const StoryParam& param, const Tensor& tensor, F value_of) {
        std::vector<float> values;
        const Box box = *spec_of(param).box_of(communicator_.rank());
        for (const std::int64_t index : global_indices(param.shape, box)) {
            values.push_back(value_of(index));
        }
        write_floats(tensor, values);
    }

    void build_model() {
        for (const StoryGroup& group : story().groups) {
            for (const StoryParam& param : group.params) {
                auto made = std::make_shared<optim::Parameter>();
                made->name = param.name;
                made->data = device_tensor(param, param.name);
                made->grad = device_tensor(param, param.name + ".grad");
                fill(param, made->data, [&](std::int64_t index) {
                    return initial_value(story().seed, param.name, index);
                });
                params_.push_back(std::move(made));
            }
        }
    }

    void build_optimizer() {
        const int steps_done = restarted_ ? story().steps_before : 0;
        std::vector<optim::ParamGroup> groups;
        for (std::size_t g = 0; g < groups_at(story(), steps_done); ++g) {
            groups.push_back(take_group(g));
            if (restarted_) {  // only what a load restores may count
                groups.back().options.lr *= 3;
                groups.back().options.weight_decay += 0.5;
                groups.back().options.beta1 /= 2;
            }
        }
        const sim::MemoryLedger::Window window(device_.ledger());
        optimizer_ = shared_.subject.make(device_, communicator_, std::move(groups), story());
        construction_rise_ = window.rise(MemoryKind::device);
    }

    [[nodiscard]] optim::ParamGroup take_group(std::size_t number) const {
        const StoryGroup& group = story().groups[number];
        optim::ParamGroup taken;
        taken.options = group.options;
        for (const StoryParam& param : group.params) {
            taken.params.push_back(*std::find_if(params_.begin(), params_.end(), [&](auto& one) {
                return one->name == param.name;
            }));
        }
        return taken;
    }

    void set_gradients(int step) {
        std::size_t next = 0;
        for (const StoryGroup& group : story().groups) {
            for (const StoryParam& param : group.params) {
                optim::Parameter& live = *params_[next++];
                live.has_grad = has_gradient(param, step);
                fill(param, live.grad, [&](std::int64_t index) {
                    return gradient_value(story().seed, param.name, index, step);
                });
            }
        }
    }

    void check_groups() const {
        const auto& live = optimizer_->param_groups();
        PROP_TRUE(live.size() == story().groups.size(), "another number of groups");
        for (std::size_t g = 0; g < live.size(); ++g) {
            optim::AdamWOptions expected = story().groups[g].options;
            if (g == 0 && story().lr_after_load) {
                expected.lr = *story().lr_after_load;
            }
            PROP_TRUE(live[g].options == expected,
                      fmt::format("group {} has other hyper-parameters", g));
        }
    }

    void place(const std::string& name, const std::string& key, const Tensor& local,
               std::vector<float>& global) {
        const auto& param = *std::find_if(params_.begin(), params_.end(),
                                          [&](auto& one) { return one->name == name; });
        const ShardSpec& spec = *param->data.shard();
        const std::vector<float> values = optim::to_floats(local);
        const auto indices = global_indices(spec.global_shape, *spec.box_of(communicator_.rank()));
        PROP_TRUE(values.size() == indices.size(), name + "." + key + " has another size");
        const auto count = static_cast<std::size_t>(optim::numel(spec.global_shape));
        global.resize(count);
        std::vector<int>& holders = shared_.holders[name][key];
        holders.resize(count);
        for (std::size_t i = 0; i < indices.size(); ++i) {
            const auto index = static_cast<std::size_t>(indices[i]);
            PROP_TRUE(holders[index] == 0 || std::bit_cast<std::uint32_t>(global[index]) ==
                                                 std::bit_cast<std::uint32_t>(values[i]),
                      fmt::format("{}.{}: replicas differ at element {}", name, key, index));
            global[index] = values[i];
            ++holders[index];
        }
    }

    Shared& shared_;
    sim::Communicator& communicator_;
    sim::SimulatedDevice& device_;
    sim::Stream stream_;
    bool restarted_;
    std::vector<optim::ParameterPtr> params_;
    std::unique_ptr<optim::Optimizer> optimizer_;
    std::unique_ptr<harness::TrainEngine> engine_;
    std::uint64_t construction_rise_ = 0;
};

void rest_of_story(const Story& story, Rank& rank) {
    rank.load();
    for (int step = 0; step < story.steps_after; ++step) {
        rank.train(story.steps_before + step);
    }
    rank.collect();
}

void first_part(const Story& story, Rank& rank) {
    for (int step = 0; step < story.steps_before; ++step) {
        rank.train(step);
    }
    rank.save();
    if (!story.restart) {
        rank.train(stray_step);
        rest_of_story(story, rank);
    }
}

/// Every element of what collect() put together came from the ranks that must hold it.
void check_coverage(const Shared& shared) {
    const Story& story = shared.story;
    const Shape& mesh = story.restart ? story.load_mesh : story.mesh;
    for (const StoryGroup& group : story.groups) {
        for (const StoryParam& param : group.params) {
            const auto collected = shared.holders.find(param.name);
            PROP_TRUE(collected != shared.holders.end(), param.name + " was not collected");
            for (const auto& [key, holders] : collected->second) {
                const std::string fault =
                    coverage_fault(holders, mesh, placements_of(param, story.restart));
                PROP_TRUE(fault.empty(), param.name + "." + key + ": " + fault);
            }
        }
    }
}

/// Runs `part` on fresh devices of a world of `mesh`.
void run_world(Shared& shared, const Shape& mesh, bool restarted,
               void (*part)(const Story&, Rank&)) {
    sim::WorldOptions world;
    world.size = world_size(mesh);
    world.seed = shared.story.seed;
    sim::SimulatedDeviceOptions all;
    all.capacity_bytes = std::uint64_t{1} << 20U;
    all.schedule = shared.story.schedule;
    all.seed = shared.story.seed;
    if (backend != nullptr) {
        backend->begin(world.size, all);
    }
    const auto results = sim::run_ranks(world, [&](sim::Communicator& communicator) {
        sim::SimulatedDeviceOptions options = all;
        options.rank = communicator.rank();
        const auto device =
            backend != nullptr ? backend->make(options) : sim::make_simulated_device(options);
        {
            Rank rank(shared, communicator, *device, restarted);
            part(shared.story, rank);
        }
        device->finish();
        for (const sim::Finding& finding : device->findings()) {
            shared.outcome.findings.push_back(finding.text);
        }
    });
    sim::rethrow_first(results);
    for (const sim::RankResult& result : results) {
        PROP_TRUE(result.end == sim::RankResult::End::finished, "a rank did not finish");
    }
}

}  // namespace

void use_backend(const harness::scenario::Backend& wanted) {
    backend = &wanted;
}

Subject swap_adamw() {
    return {[](sim::Device& device, sim::Communicator& communicator,
               std::vector<optim::ParamGroup> groups, const Story& story) {
                optim::SwapAdamWOptions options;
                options.bucket_elements = story.bucket_elements;
                options.slots = story.slots;
                options.keep_slots = story.keep_slots;
                return std::make_unique<optim::SwapAdamW>(device, communicator, std::move(groups),
                                                          options);
            },
            harness::Checks::full};
}

Subject specimen(std::vector<std::string> defects) {
    for (const std::string& name : defects) {
        // An unknown one would throw in every story, and so count as caught.
        SWAPLAB_ASSERT(std::any_of(harness::defects().begin(), harness::defects().end(),
                                   [&](const auto& known) { return known.name == name; }),
                       "no defect " + name);
    }
    return {[defects = std::move(defects)](sim::Device& device, sim::Communicator& communicator,
                                           std::vector<optim::ParamGroup> groups, const Story&) {
                return harness::make_specimen(device, communicator, std::move(groups), defects);
            },
            harness::Checks::torch};
}

Outcome run(const Story& story, const Subject& subject) {
    Outcome outcome;
    outcome.storage = harness::make_memory_storage();
    Shared shared{story, subject, outcome, {}, {}};
    shared.saved.resize(static_cast<std::size_t>(world_size(story.mesh)));
    run_world(shared, story.mesh, false, first_part);
    if (story.restart) {
        run_world(shared, story.load_mesh, true, rest_of_story);
    }
    check_coverage(shared);
    return outcome;
}

}  // namespace swaplab::properties
