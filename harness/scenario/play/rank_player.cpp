#include "scenario/play/rank_player.hpp"

#include "scenario/play/backend.hpp"
#include "scenario/play/memory_figures.hpp"
#include "scenario/play/seeded_values.hpp"
#include "scenario/play/step_error.hpp"

#include "swaplab/harness/specimen.hpp"
#include "swaplab/optim/adamw.hpp"
#include "swaplab/optim/refusal.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

namespace swaplab::harness::scenario {
namespace {

using optim::ParameterPtr;
using optim::Tensor;

/// Whether something compares the worst peak, which costs time at every step.
bool asks_for_worst(const Run& run) {
    return std::any_of(run.steps.begin(), run.steps.end(), [](const Step& step) {
        return std::any_of(step.expect.begin(), step.expect.end(),
                           [](const Expectation& each) { return each.bytes_of == BytesOf::worst; });
    });
}

std::unique_ptr<optim::Optimizer> make_optimizer(const SetUp& set_up, const CaseSpec& which,
                                                 sim::Device& device,
                                                 sim::Communicator& communicator,
                                                 std::vector<optim::ParamGroup> groups) {
    const std::string& kind = set_up.kind == "case" ? which.optimizer : set_up.kind;
    if (kind == "adamw") {
        return std::make_unique<optim::AdamW>(device, communicator, std::move(groups));
    }
    if (kind == "swap_adamw") {
        optim::SwapAdamWOptions options;
        options.bucket_elements = set_up.bucket_elements;
        options.slots = set_up.slots;
        options.keep_slots = set_up.keep_slots;
        return std::make_unique<optim::SwapAdamW>(device, communicator, std::move(groups), options);
    }
    return make_specimen(device, communicator, std::move(groups), which.defects);
}

bool contains(const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

sim::SimulatedDeviceOptions device_options(const SetUp& set_up, std::uint64_t seed) {
    sim::SimulatedDeviceOptions options;
    options.capacity_bytes = set_up.capacity_bytes;
    options.schedule = set_up.schedule;
    options.seed = seed;
    options.allocation = set_up.allocator;
    options.pinned = set_up.pinned_policy;
    options.pinned_quota_bytes = set_up.pinned_quota_bytes.value_or(options.pinned_quota_bytes);
    return options;
}

RankPlayer::RankPlayer(const Stage& stage, std::size_t first, int rank, std::uint64_t seed,
                       Saves& saves)
    : stage_(stage),
      saves_(saves),
      set_up_(set_up_of_process(*stage.run, first)),
      rank_(rank),
      faults_(rank),
      storage_(*stage.storage, faults_, rank) {
    options_ = device_options(set_up_, seed);
    options_.rank = rank;
    const Backend* const backend = stage.run->backend;
    choices_.begin_as(stage.run->orders, first, rank);
    if (set_up_.every_order) {
        options_.choose = [this](std::size_t count) { return choices_.choose(count); };
    }
    device_ = backend != nullptr ? backend->make(options_) : sim::make_simulated_device(options_);
    device_->ledger().limit_host(set_up_.host_capacity_bytes.value_or(UINT64_MAX));
    if (stage.run->traced) {
        recording_ = sim::make_recording_device(*device_, program_);
    }
    faulty_ = sim::make_faulty_device(device(), faults_);
    history_.process = first;
}

RankPlayer::~RankPlayer() = default;

void RankPlayer::write(const Tensor& to, std::vector<float> values, const char* kernel) {
    if (values.empty()) {
        return;
    }
    auto* target = reinterpret_cast<float*>(to.storage().data());
    sim::Kernel launch;
    launch.name = kernel;
    launch.writes = {{target, to.local_bytes()}};
    if (const Backend* backend = stage_.run->backend) {
        const auto bytes = std::as_bytes(std::span(values));
        launch.cuda_launcher = backend->write_launcher(target, {bytes.begin(), bytes.end()});
    }
    launch.host_body = [target, values = std::move(values)](const sim::DeviceAccess& access) {
        std::memcpy(access.at(target), values.data(), values.size() * sizeof(float));
    };
    faulty_->launch(std::move(launch), *stream_);
}

ParameterPtr RankPlayer::make_parameter(const ParamSpec& spec) {
    const optim::ShardSpec shard = spec.shard(set_up_.mesh);
    const auto own = shard.box_of(rank_);
    const optim::Box box = own.value_or(optim::Box{shard.global_shape, Shape(spec.shape.size())});
    const auto bytes = static_cast<std::uint64_t>(optim::numel(box.sizes)) * sizeof(float);
    const auto storage = [&](const std::string& tag) {
        return optim::make_device_storage(*faulty_, bytes, *stream_, tag, set_up_.chunk_bytes);
    };
    auto param = std::make_shared<optim::Parameter>();
    param->name = spec.name;
    param->data = Tensor(sim::DType::float32, box.sizes, storage(spec.name), shard);
    param->grad = Tensor(sim::DType::float32, box.sizes, storage(spec.name + ".grad"), shard);
    std::vector<float> values;
    for (const std::int64_t position : global_indices(spec.shape, box)) {
        values.push_back(spec.init ? static_cast<float>(*spec.init)
                                   : seeded_parameter(set_up_.seed, spec.name, position));
    }
    write(param->data, std::move(values), "init");
    return param;
}

optim::ParamGroup RankPlayer::make_group(const GroupSpec& spec) {
    optim::ParamGroup group;
    group.options = spec.options;
    for (const std::string& name : spec.params) {
        const auto found = std::find_if(params_.begin(), params_.end(),
                                        [&](const auto& param) { return param->name == name; });
        group.params.push_back(*found);
    }
    return group;
}

void RankPlayer::build(sim::Communicator& communicator, StepRecord* record) {
    communicator_ = &communicator;
    const auto work = [&] {
        stream_ = std::make_unique<sim::Stream>(*faulty_, "model");
        for (const ParamSpec& spec : set_up_.params) {
            params_.push_back(make_parameter(spec));
        }
        faulty_->synchronize(stream_->ref());
        std::vector<optim::ParamGroup> groups;
        for (const GroupSpec& spec : set_up_.groups) {
            groups.push_back(make_group(spec));
        }
        optimizer_ =
            make_optimizer(set_up_, stage_.run->which, *faulty_, communicator, std::move(groups));
    };
    if (record == nullptr) {
        work();
        state_ = capture_rank(*device_, params_, *optimizer_);
        return;
    }
    measured(*record, "restart", work);
}

void RankPlayer::measured(StepRecord& record, const std::string& verb,
                          const std::function<void()>& work) {
    record.reached = true;
    record.before = state_;
    const std::size_t trace_begin = device_->trace().size();
    storage_.log().clear();
    begin_memory(record, *device_);
    const sim::IssuePoint begin = device_->issue_point();
    if (asks_for_worst(*stage_.run)) {
        begin_worst(record.worst.emplace(), *device_);
    }
    {
        const sim::MemoryLedger::Window window(device_->ledger());
        const auto clock_begin = std::chrono::steady_clock::now();
        try {
            work();
        } catch (const std::exception&) {
            record.error = step_error(std::current_exception(), rank_, verb);
        }
        const auto spent = std::chrono::steady_clock::now() - clock_begin;
        record.spent_ms = std::chrono::duration_cast<std::chrono::milliseconds>(spent).count();
        end_memory(record, *device_, window);
    }
    if (record.worst) {
        end_worst(*record.worst, *device_, begin);
    }
    record.ended = true;
    const auto& trace = device_->trace();
    record.trace.assign(trace.begin() + static_cast<std::ptrdiff_t>(trace_begin), trace.end());
    record.storage = storage_.log();
    const auto found = new_findings();
    record.findings.insert(record.findings.end(), found.begin(), found.end());
    if (optimizer_ != nullptr) {
        state_ = capture_rank(*device_, params_, *optimizer_);
    }
    record.after = state_;
}

std::vector<sim::Finding> RankPlayer::new_findings() {
    const auto& all = device_->findings();
    std::vector<sim::Finding> out(all.begin() + static_cast<std::ptrdiff_t>(findings_seen_),
                                  all.end());
    findings_seen_ = all.size();
    device_lost_ = device_lost_ || (late_at_ > 0 && faults_.fitting_passes() >= late_at_);
    if (device_lost_) {  // nothing runs there any more, so nobody can wait for it
        out.erase(std::remove_if(out.begin(), out.end(),
                                 [](const sim::Finding& finding) {
                                     return finding.kind != sim::FindingKind::leak;
                                 }),
                  out.end());
    }
    return out;
}

bool RankPlayer::play(std::size_t index, StepRecord& record) {
    const Step& step = stage_.run->steps[index];
    const bool faulty = step.fault && step.fault->rank == rank_;
    const auto* train_step = std::get_if<TrainStep>(&step.action);
    record.units = unit_values(
        step.after, rank_, train_step != nullptr ? train_step->none : std::vector<std::string>{});
    if (faulty) {
        faults_.arm({fault_of(*step.fault)});
        storage_.expect_fault(step.fault->file, step.fault->disk_error);
    }
    const bool late = faulty && step.fault->then == sim::FaultAction::late;
    late_at_ = late ? static_cast<std::uint64_t>(step.fault->nth) : 0;
    const std::int64_t training_steps = history_.training_steps;
    measured(record, step.verb, [&] { perform(step); });
    record.too_slow = record.spent_ms > step.after.timeout_ms;
    record.fault_passes = faulty ? faults_.fitting_passes() : 0;
    record.fault_happened = faults_.disarm() || !faulty;
    if (record.error) {
        history_.training_steps = training_steps;
    } else {
        remember(index);
    }
    record.history = history_;
    return (!record.error || step.may_fail()) && !record.too_slow;
}

void RankPlayer::pass_collective() {
    if (faults_.pass({collective_seam, "collective"}) != nullptr) {
        throw sim::DeadlineExceeded(
            fmt::format("rank {}: a collective failed: the scenario breaks it", rank_),
            {{"operation", "collective"}, {"rank", fmt::format("rank {}", rank_)}});
    }
}

/// Follows the history line: what a run that was never interrupted would have done up to here.
void RankPlayer::remember(std::size_t index) {
    const Action& action = stage_.run->steps[index].action;
    if (const auto* load = std::get_if<LoadStep>(&action)) {
        const auto saved = saves_.find(load->from);
        if (saved != saves_.end() && saved->second.history) {
            if (SWAPLAB_MUTANT("play.load_keeps_history")) {
                return;
            }
            history_ = *saved->second.history;
            return;
        }
        history_ = {};
        history_.known = false;
        const auto& view = state_.views[static_cast<std::size_t>(View::step)];
        for (const auto& [name, keys] : view.state) {
            const auto found = keys.find("step");
            if (found != keys.end() && found->second.bytes.size() == sizeof(float)) {
                float value = 0;
                std::memcpy(&value, found->second.bytes.data(), sizeof value);
                history_.training_steps =
                    std::max<std::int64_t>(history_.training_steps, std::llround(value));
            }
        }
        return;
    }
    const bool counts = std::holds_alternative<TrainStep>(action) ||
                        std::holds_alternative<SetStep>(action) ||
                        std::holds_alternative<AddGroupStep>(action);
    if (counts) {
        history_.steps.push_back(index);
    }
}

void RankPlayer::perform(const Step& step) {
    if (const auto* action = std::get_if<TrainStep>(&step.action)) {
        train(*action);
    } else if (const auto* save_step = std::get_if<SaveStep>(&step.action)) {
        save(*save_step);
    } else if (const auto* load_step = std::get_if<LoadStep>(&step.action)) {
        load(*load_step);
    } else if (const auto* set = std::get_if<SetStep>(&step.action)) {
        set->patch.apply(optimizer_->param_groups().at(set->group).options);
    } else if (const auto* added = std::get_if<AddGroupStep>(&step.action)) {
        add_group(*added);
    } else if (std::holds_alternative<InitStateStep>(step.action)) {
        optimizer_->init_state();
    } else if (const auto* edit = std::get_if<EditStep>(&step.action)) {
        edit_saved(saves_, *stage_.storage, *edit, rank_);
    } else if (const auto* damage = std::get_if<DamageStep>(&step.action)) {
        if (rank_ == 0) {
            damage_directory(*stage_.storage, *damage);
        }
    } else if (const auto* hold = std::get_if<HoldStep>(&step.action)) {
        held_.hold(*hold, unit_values(step.after, rank_, {}), device(), *faulty_, stream_->ref());
    } else if (const auto* release = std::get_if<ReleaseStep>(&step.action)) {
        held_.release(release->name);
    }
}

void RankPlayer::train(const TrainStep& step) {
    for (std::int64_t nth = 0; nth < step.steps; ++nth) {
        train_once(step, nth);
    }
}

void RankPlayer::train_once(const TrainStep& step, std::int64_t nth) {
    if (!step.lr.empty()) {
        for (optim::ParamGroup& group : optimizer_->param_groups()) {
            group.options.lr = step.lr[static_cast<std::size_t>(nth)];
        }
    }
    ++history_.training_steps;
    for (const ParameterPtr& param : params_) {
        backward(param, step);
    }
    faulty_->synchronize(stream_->ref());
    optimizer_->step();
}

/// Gradients appear on the device, as a backward pass leaves them there: no copy, no host memory.
void RankPlayer::backward(const ParameterPtr& param, const TrainStep& step) {
    param->has_grad = !contains(step.none, param->name);
    const auto box = param->data.shard()->box_of(rank_);
    if (param->has_grad && box) {
        const auto positions = global_indices(param->data.global_shape(), *box);
        write(param->grad, gradient(*param, step, positions), "backward");
    }
}

std::vector<float> RankPlayer::gradient(const optim::Parameter& param, const TrainStep& step,
                                        const std::vector<std::int64_t>& positions) {
    std::vector<float> values(positions.size());
    if (contains(step.zero, param.name)) {
        return values;
    }
    const std::int64_t training_step = history_.training_steps;
    if (!step.gradients.empty()) {
        const std::string path = stage_.directory + "/" + step.gradients;
        const auto found = gradient_files_.try_emplace(path, path).first;
        const auto& whole =
            found->second.at(training_step, param.name, optim::numel(param.data.global_shape()));
        std::transform(positions.begin(), positions.end(), values.begin(),
                       [&](std::int64_t at) { return whole[static_cast<std::size_t>(at)]; });
        return values;
    }
    std::transform(positions.begin(), positions.end(), values.begin(), [&](std::int64_t at) {
        return seeded_gradient(set_up_.seed, param.name, at, training_step);
    });
    return values;
}

void RankPlayer::add_group(const AddGroupStep& step) {
    optim::ParamGroup group;
    group.options = step.options;
    for (const ParamSpec& spec : step.params) {
        params_.push_back(make_parameter(spec));
        group.params.push_back(params_.back());
        set_up_.params.push_back(spec);
    }
    faulty_->synchronize(stream_->ref());
    engines_.clear();
    optimizer_->add_param_group(std::move(group));
}

TrainEngine& RankPlayer::engine(Checks checks) {
    std::unique_ptr<TrainEngine>& found = engines_[checks];
    if (found == nullptr) {
        EngineOptions options;
        options.chunk_bytes = set_up_.chunk_bytes;
        options.checks = checks;
        options.on_phase = [this](std::string_view phase) {
            if (faults_.pass({phase_seam, phase}) != nullptr) {
                throw StorageError(
                    fmt::format("rank {}: {} failed: the scenario breaks it", rank_, phase),
                    {{"operation", std::string(phase)},
                     {"rank", fmt::format("rank {}", rank_)},
                     {"reason", "injected"}});
            }
        };
        found = std::make_unique<TrainEngine>(
            *faulty_, *communicator_, storage_, params_, *optimizer_,
            specimen_engine(std::move(options), stage_.run->which.defects));
    }
    return *found;
}

void RankPlayer::save(const SaveStep& step) {
    if (step.via == Via::dcp) {
        SaveRequest request;
        request.model = step.what.model;
        request.optimizer = step.what.optimizer;
        engine(step.checks).save_dcp(step.to, request);
    }
    Saved& saved = saves_[step.to];
    saved = {step.via, step.what.model, step.what.optimizer, history_, {}};
    if (step.via == Via::dcp) {
        return;
    }
    const bool live = step.via == Via::live;
    SavedDict& dict = saved.dict;
    for (const ParameterPtr& param : step.what.model ? params_ : std::vector<ParameterPtr>{}) {
        dict.params.emplace_back(param->name, live ? param->data : param->data.clone_to_host());
    }
    if (step.what.optimizer) {
        dict.state = optimizer_->state_dict(live ? optim::Snapshot::live : optim::Snapshot::owned);
        for (auto& [name, leaves] : dict.state.state) {
            for (auto& [key, value] : leaves.items) {
                const auto* tensor = value.get_if<Tensor>();
                if (tensor != nullptr && !live) {
                    value = tensor->clone_to_host();  // off the ledger: it outlives the process
                }
            }
        }
    }
}

void RankPlayer::load(const LoadStep& step) {
    if (step.via != Via::dcp) {
        load_dict(step);
        return;
    }
    LoadRequest request;
    request.load_states = step.load_states;
    request.load_args = step.load_args;
    request.staging = step.staging;
    request.template_kind = step.template_kind;
    request.model = step.what.model;
    request.optimizer = step.what.optimizer;
    TrainEngine& through = engine(step.checks);
    if (step.what.given && step.what.optimizer_first && step.what.model) {
        request.model = false;
        through.load_dcp(step.from, request);
        request.model = true;
        request.optimizer = false;
    }
    through.load_dcp(step.from, request);
}

/// The optimizer goes first unless the file says otherwise: it may refuse, and then no parameter
/// has changed.
void RankPlayer::load_dict(const LoadStep& step) {
    const SavedDict& dict = saved_as(saves_, step.from).dict;
    const bool model_first = step.what.given && !step.what.optimizer_first;
    if (step.what.model && model_first) {
        load_params(dict);
    }
    if (step.what.optimizer) {
        load_optimizer(step, dict);
    }
    if (step.what.model && !model_first) {
        load_params(dict);
    }
}

void RankPlayer::load_optimizer(const LoadStep& step, const SavedDict& dict) {
    const bool plain =
        step.load_states && step.load_args && step.staging == optim::LoadOptions::Staging::none;
    if (plain) {
        optimizer_->load_state_dict(dict.state);
        return;
    }
    optim::LoadOptions options;
    options.staging = step.staging;
    options.load_states = step.load_states;
    options.load_args = step.load_args;
    options.template_kind = step.template_kind;
    optim::StateDictSource source(dict.state);
    optimizer_->load(source, options);
}

void RankPlayer::load_params(const SavedDict& dict) {
    const auto find = [&](const std::string& name) {
        return std::find_if(dict.params.begin(), dict.params.end(),
                            [&](const auto& entry) { return entry.first == name; });
    };
    std::vector<optim::Mismatch> mismatches;
    for (const ParameterPtr& param : params_) {
        const auto found = find(param->name);
        const bool there = found != dict.params.end();
        if (!there || found->second.local_shape() != param->data.local_shape()) {
            optim::Mismatch mismatch;
            mismatch.rank = rank_;
            mismatch.parameter = param->name;
            mismatch.expected = optim::to_string(param->data.global_shape());
            mismatch.found = there ? optim::to_string(found->second.global_shape()) : "missing";
            mismatches.push_back(std::move(mismatch));
        }
    }
    optim::refuse_together(*communicator_, "load parameters", "state dict", mismatches);
    for (const ParameterPtr& param : params_) {
        const Tensor& from = find(param->name)->second;
        if (from.storage_ptr() != param->data.storage_ptr() && from.local_bytes() > 0) {
            param->data.storage().write(0, from.to_bytes());
        }
    }
    optimizer_->set_parameters_torn(false);
}

std::vector<sim::Finding> RankPlayer::tear_down() {
    engines_.clear();
    optimizer_.reset();
    params_.clear();
    held_.release_all();
    stream_.reset();
    device_->finish();
    return new_findings();
}

}  // namespace swaplab::harness::scenario
