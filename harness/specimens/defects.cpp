#include "specimens/defects.hpp"

#include "specimens/edit_distance.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

const std::vector<DefectInfo>& defects() {
    static const std::vector<DefectInfo> all{
        {"stale_groups",
         "step() uses the groups of before the load: edits made later are shown but have no effect",
         "NVIDIA/apex#766; InternLM/xtuner, swap_adamw.py before its resume fix"},
        {"stale_moments",
         "step() uses the moment buffers of before the load: state_dict() shows the loaded ones",
         "verl-project/verl#4870; InternLM/xtuner, swap_adamw.py before its resume fix"},
        {"device_init",
         "construction makes each moment on the device first: one temporary of the parameter's "
         "size at a time",
         "InternLM/xtuner, swap_adamw.py"},
        {"device_cast",
         "a load casts all moments to the parameters' device before it brings them back to the "
         "host",
         "NVIDIA/Megatron-LM#4638; PyTorch 2.8, Optimizer.load_state_dict"},
        {"cast_stays",
         "what device_cast brought to the device stays there (no effect without device_cast)",
         "InternLM/xtuner#1986"},
        {"local_moments",
         "moments are plain local tensors: a checkpoint writer takes the ranks' shards for "
         "replicas of one tensor",
         "pytorch/pytorch#120356; InternLM/xtuner, swap_adamw.py before its resume fix"},
        {"none_leaf",
         "without amsgrad max_exp_avg_sq = None is written, and a checkpoint without that key "
         "cannot be loaded",
         "InternLM/xtuner, swap_adamw.py"},
        {"reinit_on_load",
         "a load ends by running the initialiser again, which zeroes restored moments and steps",
         "OpenNMT/OpenNMT-py#617"},
        {"reinit_zeroes", "init_state() zeroes the moments and steps that exist already",
         "OpenNMT/OpenNMT-py#617; NVIDIA/Megatron-LM#5974"},
        {"hook_restore",
         "a load casts all moments to the device, and the post-load hook that shall restore them "
         "rebuilds them as zero",
         "InternLM/xtuner, a first repair by register_load_state_dict_post_hook"},
        {"drops_added_groups", "parameters added after construction get no state and never step",
         "InternLM/xtuner, swap_adamw.py: add_param_group is not overridden"},
        {"step_per_group",
         "one step counter per group advances for parameters without gradient, too",
         "InternLM/xtuner#2018"},
        {"absent_is_fatal",
         "a parameter without state in the checkpoint (it had no gradient yet) stops the load",
         "InternLM/xtuner#2018; pytorch/pytorch#192224"},
        {"zero_for_missing",
         "a moment or step that is missing from a parameter's state is taken for zero without a "
         "word",
         "the plausible wrong repair of InternLM/xtuner#2018"},
        {"step_restarts", "a load keeps the moments and starts the step counters again at 0",
         "OpenNMT/OpenNMT-py#617"},
        {"alias_on_load", "after load_state_dict() the state is made of the caller's own tensors",
         "pytorch/pytorch#196083"},
        {"by_position",
         "load_state_dict() gives state to parameters by their position, not by their name",
         "pytorch/pytorch#1489"},
        {"shape_unchecked",
         "load_state_dict() takes moments of any shape; the first step that reads one fails",
         "hpcaitech/ColossalAI#5492; PyTorch 2.8, Optimizer.load_state_dict"},
        {"plain_accepted",
         "load_state_dict() takes a plain moment of a sharded parameter for this rank's shard",
         "pytorch/pytorch#120356"},
        {"tear_unmarked",
         "a read that fails half-way leaves the state half overwritten and nothing says so",
         "PyTorch 2.8: a failed load leaves targets that were filled already"},
    };
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
        bits_ |= 1U << static_cast<unsigned>(found - all.begin());
    }
}

}  // namespace swaplab::harness
