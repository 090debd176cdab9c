#include "specimens/defects.hpp"

#include "specimens/edit_distance.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace swaplab::harness {
namespace {

std::string_view nearest_to(std::string_view name) {
    const auto& all = defects();
    return std::min_element(all.begin(), all.end(),
                            [&](const DefectInfo& a, const DefectInfo& b) {
                                return edit_distance(a.name, name) < edit_distance(b.name, name);
                            })
        ->name;
}

/// Which buffers hold the state, and where.
constexpr std::array buffers{
    DefectInfo{
        "stale_groups",
        "step() uses the groups of before the load: edits made later are shown but have no effect",
        "NVIDIA/apex#766; InternLM/xtuner, swap_adamw.py before its resume fix"},
    DefectInfo{
        "stale_moments",
        "step() uses the moment buffers of before the load: state_dict() shows the loaded ones",
        "verl-project/verl#4870; InternLM/xtuner, swap_adamw.py before its resume fix"},
    DefectInfo{
        "device_init",
        "construction makes each moment on the device first: one temporary of the parameter's "
        "size at a time",
        "InternLM/xtuner, swap_adamw.py"},
    DefectInfo{
        "device_cast",
        "a load casts all moments to the parameters' device before it brings them back to the "
        "host",
        "NVIDIA/Megatron-LM#4638; PyTorch 2.8, Optimizer.load_state_dict"},
    DefectInfo{"cast_stays",
               "what device_cast brought to the device stays there (no effect without device_cast)",
               "InternLM/xtuner#1986"},
    DefectInfo{"local_moments",
               "moments are plain local tensors: a checkpoint writer takes the ranks' shards for "
               "replicas of one tensor",
               "pytorch/pytorch#120356; InternLM/xtuner, swap_adamw.py before its resume fix"},
};

/// State that is lost, made up or counted wrongly.
constexpr std::array lost_state{
    DefectInfo{
        "none_leaf",
        "without amsgrad max_exp_avg_sq = None is written, and a checkpoint without that key "
        "cannot be loaded",
        "InternLM/xtuner, swap_adamw.py"},
    DefectInfo{
        "reinit_on_load",
        "a load ends by running the initialiser again, which zeroes restored moments and steps",
        "OpenNMT/OpenNMT-py#617"},
    DefectInfo{"reinit_zeroes", "init_state() zeroes the moments and steps that exist already",
               "OpenNMT/OpenNMT-py#617; NVIDIA/Megatron-LM#5974"},
    DefectInfo{
        "hook_restore",
        "a load casts all moments to the device, and the post-load hook that shall restore them "
        "rebuilds them as zero",
        "InternLM/xtuner, a first repair by register_load_state_dict_post_hook"},
    DefectInfo{"drops_added_groups",
               "parameters added after construction get no state and never step",
               "InternLM/xtuner, swap_adamw.py: add_param_group is not overridden"},
    DefectInfo{"step_per_group",
               "one step counter per group advances for parameters without gradient, too",
               "InternLM/xtuner#2018"},
    DefectInfo{
        "absent_is_fatal",
        "a parameter without state in the checkpoint (it had no gradient yet) stops the load",
        "InternLM/xtuner#2018; pytorch/pytorch#192224"},
    DefectInfo{
        "zero_for_missing",
        "a moment or step that is missing from a parameter's state is taken for zero without a "
        "word",
        "the plausible wrong repair of InternLM/xtuner#2018"},
    DefectInfo{"step_restarts", "a load keeps the moments and starts the step counters again at 0",
               "OpenNMT/OpenNMT-py#617"},
};

/// What a load takes, or leaves, without a word.
constexpr std::array taken_on_trust{
    DefectInfo{"alias_on_load",
               "after load_state_dict() the state is made of the caller's own tensors",
               "pytorch/pytorch#196083"},
    DefectInfo{"by_position",
               "load_state_dict() gives state to parameters by their position, not by their name",
               "pytorch/pytorch#1489"},
    DefectInfo{"shape_unchecked",
               "load_state_dict() takes moments of any shape; the first step that reads one fails",
               "hpcaitech/ColossalAI#5492; PyTorch 2.8, Optimizer.load_state_dict"},
    DefectInfo{
        "plain_accepted",
        "load_state_dict() takes a plain moment of a sharded parameter for this rank's shard",
        "pytorch/pytorch#120356"},
    DefectInfo{"tear_unmarked",
               "a read that fails half-way leaves the state half overwritten and nothing says so",
               "PyTorch 2.8: a failed load leaves targets that were filled already"},
};

/// Device copies of moments during step().
constexpr std::array copies_in_step{
    DefectInfo{
        "slots_pile_up",
        "step() gives device copies of moments back only at its end: the whole state is there at "
        "once",
        "PrimeIntellect-ai/prime-rl, CPUOffloadOptimizer"},
    DefectInfo{"slots_stay", "step() leaves the device copies that it made last where they are",
               "ISEEKYAN/Megatron-LM#232: the call that evicts is missing"},
    DefectInfo{"slots_leak", "step() never gives back a device copy: each step adds its own",
               "deepspeedai/DeepSpeed#5700: buffers of a swap that has ended stay"},
    DefectInfo{
        "updates_aside",
        "step() updates a copy of each parameter and copies that back: both are there at once",
        "goodfire-ai/spd#932: restored arrays are not donated, input and output coexist"},
    DefectInfo{
        "slots_unordered",
        "step() frees device copies on another stream and does not wait there before it allocates "
        "the next",
        "rapidsai/rmm, device_buffer: it frees on the stream that it was given last"},
    DefectInfo{"frees_unwaited",
               "step() frees device copies on another stream that does not wait for their last use",
               "mindspore-ai/hyper-parallel#894: staging buffers without record_stream"},
    DefectInfo{"download_unwaited",
               "step() downloads moments on another stream that does not wait for their update",
               "MindSpeed, AdamWSwap: the download stream does not wait for the compute stream"},
};

/// The engine that saves and loads.
constexpr std::array engine_parts{
    DefectInfo{"unchecked_read",
               "a load does not compare what it reads with the checksums that were written with it",
               "PyTorch 2.8: its zip reader is built without CRC-32 checks", DefectPart::engine},
    DefectInfo{"exists_check_on_rank_0",
               "a save writes into the directory itself, and rank 0 alone refuses one that exists",
               "NVIDIA-NeMo/Automodel#3254", DefectPart::engine},
    DefectInfo{"sync_skipped",
               "a save gives its files their name before their bytes are on the disk",
               "PyTorch 2.8, FileSystemWriter(sync_files = False)", DefectPart::engine},
};

}  // namespace

const std::vector<DefectInfo>& defects() {
    static const std::vector<DefectInfo> all = [] {
        std::vector<DefectInfo> joined;
        for (const std::span<const DefectInfo> part :
             {std::span<const DefectInfo>(buffers), std::span<const DefectInfo>(lost_state),
              std::span<const DefectInfo>(taken_on_trust),
              std::span<const DefectInfo>(copies_in_step),
              std::span<const DefectInfo>(engine_parts)}) {
            joined.insert(joined.end(), part.begin(), part.end());
        }
        return joined;
    }();
    return all;
}

DefectSet::DefectSet(const std::vector<std::string>& names) {
    const auto& all = defects();
    for (const std::string& name : names) {
        const auto found = std::find_if(all.begin(), all.end(),
                                        [&](const DefectInfo& info) { return info.name == name; });
        if (found == all.end()) {
            throw sim::ArgumentError(
                fmt::format(
                    "unknown defect \"{}\"; nearest: \"{}\" (swaplab list --defects shows all)",
                    name, nearest_to(name)),
                {{"found", name}, {"nearest", std::string(nearest_to(name))}});
        }
        bits_ |= std::uint64_t{1} << static_cast<unsigned>(found - all.begin());
    }
}

}  // namespace swaplab::harness
