#include "symptoms.hpp"

#include "support/training.hpp"

#include "swaplab/harness/specimen.hpp"
#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/buffer.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>

namespace swaplab::testing {

using optim::Dict;
using optim::Optimizer;
using optim::Snapshot;
using optim::StateDict;
using optim::Tensor;
using optim::Value;

namespace {

using Bytes = std::map<std::string, std::vector<std::byte>>;

const std::vector<optim::Placement> rows{optim::Placement::shard(0)};
const std::vector<support::ParamSpec> specs{
    {"a", {5, 3}, rows}, {"b", {4}, rows}, {"c", {5, 3}, rows}};

/// "a.exp_avg" -> bytes; without None leaves.
Bytes bytes_of(const StateDict& state) {
    Bytes result;
    for (const auto& [fqn, leaves] : state.state) {
        for (const auto& [key, value] : leaves.items) {
            if (const auto* tensor = value.get_if<Tensor>()) {
                result[fqn + "." + *key.get_if<std::string>()] = tensor->to_bytes();
            }
        }
    }
    return result;
}

Bytes bytes_of(const support::Trainer& rig) {
    Bytes result;
    for (const auto& param : rig.model()) {
        result[param->name] = param->data.to_bytes();
    }
    return result;
}

Bytes only(const Bytes& all, bool steps) {
    Bytes result;
    for (const auto& [key, bytes] : all) {
        if (key.ends_with(".step") == steps) {
            result[key] = bytes;
        }
    }
    return result;
}

/// A source whose second tensor cannot be read.
class FailingSource final : public optim::StateDictSource {
  public:
    using StateDictSource::StateDictSource;
    void read(const std::string& fqn, const std::string& key, const Tensor& live, int rank,
              std::uint64_t offset_bytes, std::span<std::byte> out) override {
        if (++reads_ == 2) {
            throw sim::StorageError("read: input/output error", {{"operation", "read"}});
        }
        StateDictSource::read(fqn, key, live, rank, offset_bytes, out);
    }

  private:
    int reads_ = 0;
};

class Stories {
  public:
    Stories(sim::Communicator& communicator, std::vector<std::string> defects, bool amsgrad)
        : communicator_(communicator), defects_(std::move(defects)) {
        options_.lr = 0.01;
        options_.amsgrad = amsgrad;
    }

    std::set<std::string> play() {
        construct_and_save();
        measure_a_step();
        resume();
        edit_groups();
        add_a_group();
        initialise_again();
        load_damaged_dicts();
        load_reordered();
        load_torn();
        share_a_dict();
        return std::move(seen_);
    }

  private:
    struct Run {
        support::Trainer rig;
        std::unique_ptr<Optimizer> optimizer;
        Run(sim::Communicator& communicator, const optim::AdamWOptions& options,
            const std::vector<std::string>& defects)
            : rig(communicator, specs),
              optimizer(harness::make_specimen(rig.device(), communicator, {rig.group(options)},
                                               defects)) {}
        void train(std::int64_t first, std::int64_t last,
                   const std::vector<std::string>& absent = {}) {
            for (std::int64_t step = first; step <= last; ++step) {
                rig.set_gradients(step, absent);
                optimizer->step();
            }
        }
    };

    std::unique_ptr<Run> faulty() {
        return std::make_unique<Run>(communicator_, options_, defects_);
    }
    std::unique_ptr<Run> sound() {
        return std::make_unique<Run>(communicator_, options_, std::vector<std::string>{});
    }
    /// What a sound specimen shows after three steps; b had no gradient.
    StateDict saved_after_three() {
        auto run = sound();
        run->train(1, 3, {"b"});
        return run->optimizer->state_dict();
    }
    void note(bool deviates, const std::string& symptom) {
        if (deviates) {
            seen_.insert(symptom);
        }
    }
    /// True when `work` is refused or fails.
    static bool refused(const std::function<void()>& work) {
        try {
            work();
        } catch (const std::exception&) {
            return true;
        }
        return false;
    }

    void construct_and_save() {
        auto reference = sound();
        reference->train(1, 3, {"b"});
        const StateDict expected = reference->optimizer->state_dict();

        support::Trainer rig(communicator_, specs);
        const sim::MemoryLedger::Window window(rig.device().ledger());
        auto optimizer =
            harness::make_specimen(rig.device(), communicator_, {rig.group(options_)}, defects_);
        note(window.rise(sim::MemoryKind::device) > 0,
             fmt::format("construction rises by {} B", window.rise(sim::MemoryKind::device)));
        auto run = faulty();
        run->train(1, 3, {"b"});
        const StateDict saved = run->optimizer->state_dict();
        note(only(bytes_of(saved), false) != only(bytes_of(expected), false), "trains wrongly");
        note(only(bytes_of(saved), true) != only(bytes_of(expected), true),
             "counts steps without gradient");
        for (const auto& [fqn, leaves] : saved.state) {
            const Value* maximum = leaves.find("max_exp_avg_sq");
            note(maximum != nullptr && maximum->is_none(), "writes a None leaf");
            note(!leaves.find("exp_avg")->get_if<Tensor>()->shard(), "moments are plain");
        }
    }

    void measure_a_step() {
        auto run = faulty();
        std::uint64_t largest = 0;
        for (const auto& param : run->rig.model()) {
            largest = std::max(largest, param->data.local_bytes());
        }
        const sim::SimulatedDevice& device = run->rig.device();
        const auto before = static_cast<std::int64_t>(device.ledger().now(sim::MemoryKind::device));
        const sim::MemoryLedger::Window window(run->rig.device().ledger());
        run->train(1, 1);
        const std::uint64_t rise = window.rise(sim::MemoryKind::device);
        note(rise != largest * (options_.amsgrad ? 3 : 2), fmt::format("step rises by {} B", rise));
        const auto worst = static_cast<std::int64_t>(device.worst_peak().bytes) - before;
        note(worst > static_cast<std::int64_t>(rise),
             fmt::format("step may occupy {} B more", worst));
        const std::int64_t kept = window.kept(sim::MemoryKind::device);
        note(kept != 0, fmt::format("step keeps {} B", kept));
    }

    [[nodiscard]] bool has(const std::string& defect) const {
        return std::find(defects_.begin(), defects_.end(), defect) != defects_.end();
    }

    /// The dict that this specimen itself would have saved.
    StateDict own_dict() {
        StateDict saved = saved_after_three();
        for (auto& [fqn, leaves] : saved.state) {
            for (auto& [key, value] : leaves.items) {
                if (has("local_moments")) {
                    value = value.get_if<Tensor>()->without_shard();
                }
            }
            if (has("none_leaf") && leaves.find("max_exp_avg_sq") == nullptr) {
                leaves.set("max_exp_avg_sq", optim::None{});
            }
        }
        return saved;
    }

    void resume() {
        auto reference = sound();
        reference->train(1, 3, {"b"});
        const Bytes at_save = bytes_of(reference->rig);
        const StateDict saved = own_dict();
        auto run = faulty();
        run->train(7, 8);
        put(run->rig, at_save);
        {
            const sim::MemoryLedger::Window window(run->rig.device().ledger());
            run->optimizer->load_state_dict(saved);
            note(window.rise(sim::MemoryKind::device) > 0,
                 fmt::format("load rises by {} B", window.rise(sim::MemoryKind::device)));
            note(window.kept(sim::MemoryKind::device) != 0,
                 fmt::format("load keeps {} B", window.kept(sim::MemoryKind::device)));
        }
        const Bytes shown = bytes_of(run->optimizer->state_dict());
        const Bytes used = bytes_of(run->optimizer->step_state());
        note(only(shown, false) != only(bytes_of(saved), false), "load shows other moments");
        note(only(shown, true) != only(bytes_of(saved), true), "load shows other steps");
        note(only(used, false) != only(bytes_of(saved), false), "step uses other moments");
        run->train(4, 4);
        reference->train(4, 4);
        note(bytes_of(run->rig) != bytes_of(reference->rig), "next step differs");
        check_findings(*run);
    }

    static void put(const support::Trainer& rig, const Bytes& bytes) {
        for (const auto& param : rig.model()) {
            param->data.storage().write(0, bytes.at(param->name));
        }
    }

    void check_findings(Run& run) {
        run.optimizer.reset();
        for (const sim::Finding& finding : run.rig.device().findings()) {
            note(true, fmt::format("finding {}", sim::name_of(finding.kind)));
        }
    }

    void edit_groups() {
        auto run = faulty();
        run->optimizer->load_state_dict(own_dict());
        run->optimizer->param_groups()[0].options.lr = 0.0;
        run->optimizer->param_groups()[0].options.weight_decay = 0.0;
        const Bytes before = bytes_of(run->rig);
        run->train(4, 4);
        note(bytes_of(run->rig) != before, "group edits have no effect");
    }

    void add_a_group() {
        support::Trainer rig(communicator_, specs);
        std::vector<optim::ParamGroup> groups{rig.group(options_)};
        const auto added = groups[0].params.back();
        groups[0].params.pop_back();
        auto optimizer = harness::make_specimen(rig.device(), communicator_, groups, defects_);
        optimizer->add_param_group({{added}, options_, {}});
        const auto before = added->data.to_bytes();
        rig.set_gradients(1);
        optimizer->step();
        note(added->data.to_bytes() == before, "added parameter does not step");
    }

    void initialise_again() {
        auto run = faulty();
        run->train(1, 2);
        const Bytes before = bytes_of(run->optimizer->state_dict());
        run->optimizer->init_state();
        note(bytes_of(run->optimizer->state_dict()) != before, "init_state changes state");
    }

    void load_damaged_dicts() {
        const auto load = [&](const StateDict& saved) {
            auto run = faulty();
            return !refused([&] { run->optimizer->load_state_dict(saved); });
        };
        StateDict absent = own_dict();
        std::erase_if(absent.state, [](const auto& entry) { return entry.first == "b"; });
        note(!load(absent), "refuses absent state");
        StateDict half = own_dict();
        std::erase_if(half.find("a")->items, [](const auto& item) {
            return *item.first.template get_if<std::string>() == "exp_avg_sq";
        });
        note(load(half), "accepts half a state");
        StateDict wrong = own_dict();
        const optim::ShardSpec shard{
            {6, 3}, {communicator_.size()}, {optim::Placement::shard(0)}, {}};
        const optim::Shape part = shard.box_of(communicator_.rank())->sizes;
        wrong.find("a")->set(
            "exp_avg",
            optim::make_host_tensor(
                std::vector<float>(static_cast<std::size_t>(optim::numel(part))), part, shard));
        note(load(wrong), "accepts another shape");
        const StateDict without_none = has("local_moments") ? own_dict() : saved_after_three();
        optim::StateDictSource source(without_none);
        auto run = faulty();
        note(refused([&] { run->optimizer->load(source, {}); }), "needs the None leaf");
        StateDict plain = saved_after_three();
        for (auto& [fqn, leaves] : plain.state) {
            const Tensor moment = *leaves.find("exp_avg")->get_if<Tensor>();
            leaves.set("exp_avg", moment.without_shard());
        }
        note(load(plain), "accepts plain moments");
    }

    void load_reordered() {
        StateDict saved = own_dict();
        for (Dict& group : saved.param_groups) {
            group.set("params", optim::List{{"c", "b", "a"}});
        }
        auto run = faulty();
        if (!refused([&] { run->optimizer->load_state_dict(saved); })) {
            const Bytes shown = bytes_of(run->optimizer->state_dict());
            note(shown.at("a.exp_avg") == bytes_of(saved).at("c.exp_avg") &&
                     shown.at("a.exp_avg") != bytes_of(saved).at("a.exp_avg"),
                 "maps by position");
        }
    }

    void load_torn() {
        const StateDict saved = own_dict();
        auto run = faulty();
        FailingSource source(saved);
        optim::LoadOptions options;
        options.template_kind = Snapshot::live;
        note(!refused([&] { run->optimizer->load(source, options); }), "reads past an error");
        note(!run->optimizer->torn(), "a torn state is not marked");
    }

    void share_a_dict() {
        const StateDict saved = own_dict();
        const Bytes before = bytes_of(saved);
        auto run = faulty();
        run->optimizer->load_state_dict(saved);
        run->train(4, 4);
        note(bytes_of(saved) != before, "step changes the caller's dict");
    }

    sim::Communicator& communicator_;
    std::vector<std::string> defects_;
    optim::AdamWOptions options_;
    std::set<std::string> seen_;
};

}  // namespace

std::set<std::string> symptoms_of(const std::vector<std::string>& defects, int ranks,
                                  bool amsgrad) {
    std::set<std::string> seen;
    support::on_ranks(ranks, [&](sim::Communicator& communicator) {
        std::set<std::string> mine = Stories(communicator, defects, amsgrad).play();
        if (communicator.rank() == 0) {
            seen = std::move(mine);
        }
    });
    return seen;
}

}  // namespace swaplab::testing
