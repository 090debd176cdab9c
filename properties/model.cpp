#include "model.hpp"

#include "swaplab/optim/adamw_kernel.hpp"
#include "swaplab/sim/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace swaplab::properties {
namespace {

using optim::AdamWOptions;

/// A float in [-1, 1) with 20 random bits.
float to_float(std::uint64_t bits) {
    return static_cast<float>(static_cast<std::int64_t>(bits >> 44U) - (1 << 19)) /
           static_cast<float>(1 << 19);
}

std::uint64_t place(std::uint64_t seed, const std::string& name, std::int64_t index) {
    return sim::hash_mix(sim::hash_mix(seed, sim::hash_text(name)),
                         static_cast<std::uint64_t>(index));
}

GlobalState initial_state(const Story& story, const StoryGroup& group, const StoryParam& param) {
    const std::int64_t count = optim::numel(param.shape);
    const auto size = static_cast<std::size_t>(count);
    GlobalState state;
    for (std::int64_t i = 0; i < count; ++i) {
        state.param.push_back(initial_value(story.seed, param.name, i));
    }
    state.moments["exp_avg"].resize(size);
    state.moments["exp_avg_sq"].resize(size);
    if (group.options.amsgrad) {
        state.moments["max_exp_avg_sq"].resize(size);
    }
    return state;
}

void update(const Story& story, const StoryParam& param, const AdamWOptions& options, int step,
            GlobalState& state) {
    ++state.step;
    const std::int64_t count = optim::numel(param.shape);
    std::vector<float> grad;
    for (std::int64_t i = 0; i < count; ++i) {
        grad.push_back(gradient_value(story.seed, param.name, i, step));
    }
    optim::AdamWArrays arrays;
    arrays.param = state.param.data();
    arrays.grad = grad.data();
    arrays.exp_avg = state.moments.at("exp_avg").data();
    arrays.exp_avg_sq = state.moments.at("exp_avg_sq").data();
    if (options.amsgrad) {
        arrays.max_exp_avg_sq = state.moments.at("max_exp_avg_sq").data();
    }
    optim::adamw_update(arrays, count, optim::adamw_scalars(options, state.step));
}

std::string compare(const std::string& what, const std::vector<float>& expected,
                    const std::vector<float>& found) {
    if (expected.size() != found.size()) {
        return fmt::format("{}: expected {} elements, found {}", what, expected.size(),
                           found.size());
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto a = std::bit_cast<std::uint32_t>(expected[i]);
        const auto b = std::bit_cast<std::uint32_t>(found[i]);
        if (a != b) {
            return fmt::format("{}, element {}: expected {:08x} ({}), found {:08x} ({})", what, i,
                               a, expected[i], b, found[i]);
        }
    }
    return {};
}

std::string compare(const std::string& name, const GlobalState& expected,
                    const GlobalState& found) {
    if (expected.step != found.step) {
        return fmt::format("{}.step: expected {}, found {}", name, expected.step, found.step);
    }
    std::string first;  // moments before the parameter, which follows them
    for (const auto& [key, values] : expected.moments) {
        const auto other = found.moments.find(key);
        if (other == found.moments.end()) {
            return name + "." + key + ": missing";
        }
        if (first.empty()) {
            first = compare(name + "." + key, values, other->second);
        }
    }
    if (first.empty() && found.moments.size() != expected.moments.size()) {
        return name + ": moments that should not exist";
    }
    return first.empty() ? compare(name + ".param", expected.param, found.param) : first;
}

std::int64_t local_elements(const StoryParam& param, const optim::Shape& mesh, bool restarted,
                            int rank) {
    const optim::ShardSpec spec{param.shape, mesh, placements_of(param, restarted), {}};
    return optim::numel(spec.box_of(rank)->sizes);
}

}  // namespace

float initial_value(std::uint64_t seed, const std::string& name, std::int64_t index) {
    return to_float(place(seed, name, index));
}

float gradient_value(std::uint64_t seed, const std::string& name, std::int64_t index, int step) {
    return to_float(sim::hash_mix(place(seed, name, index), static_cast<std::uint64_t>(step) + 1));
}

bool has_gradient(const StoryParam& param, int step) {
    return (param.absent >> static_cast<unsigned>(step) & 1U) == 0;
}

std::size_t groups_at(const Story& story, int step) {
    return story.last_group_joins_late && step < 1 ? story.groups.size() - 1 : story.groups.size();
}

const std::vector<optim::Placement>& placements_of(const StoryParam& param, bool restarted) {
    return restarted ? param.load_placements : param.placements;
}

GlobalStates uninterrupted(const Story& story, int steps) {
    GlobalStates states;
    std::vector<AdamWOptions> options;
    for (const StoryGroup& group : story.groups) {
        options.push_back(group.options);
        for (const StoryParam& param : group.params) {
            states[param.name] = initial_state(story, group, param);
        }
    }
    for (int step = 0; step < steps; ++step) {
        if (step == story.steps_before && story.lr_after_load) {
            options[0].lr = *story.lr_after_load;
        }
        for (std::size_t g = 0; g < groups_at(story, step); ++g) {
            for (const StoryParam& param : story.groups[g].params) {
                if (has_gradient(param, step)) {
                    update(story, param, options[g], step, states.at(param.name));
                }
            }
        }
    }
    return states;
}

std::string difference(const GlobalStates& expected, const GlobalStates& found) {
    for (const auto& [name, state] : expected) {
        const auto other = found.find(name);
        std::string first =
            other == found.end() ? name + ": missing" : compare(name, state, other->second);
        if (!first.empty()) {
            return first;
        }
    }
    return {};
}

BucketFigures bucket_figures(const Story& story, bool restarted, int rank, int step,
                             std::size_t groups) {
    BucketFigures figures;
    const optim::Shape& mesh = restarted ? story.load_mesh : story.mesh;
    const bool rebuilt_whole = restarted && story.steps_before > 0;
    std::int64_t filled = 0;  // elements in the bucket that is being filled
    bool touched = false;
    bool amsgrad = false;
    const auto end_bucket = [&] {
        const std::uint64_t kinds = amsgrad ? 3 : 2;
        figures.slot_bytes =
            std::max(figures.slot_bytes, static_cast<std::uint64_t>(filled) * kinds * 4);
        figures.touched += touched ? 1 : 0;
        filled = 0;
        touched = false;
    };
    for (std::size_t g = 0; g < groups; ++g) {
        const StoryGroup& group = story.groups[g];
        const bool joined =
            story.last_group_joins_late && !rebuilt_whole && g + 1 == story.groups.size();
        if (joined) {
            end_bucket();
        }
        for (const StoryParam& param : group.params) {
            for (std::int64_t left = local_elements(param, mesh, restarted, rank); left > 0;) {
                if (group.options.amsgrad != amsgrad) {
                    end_bucket();
                    amsgrad = group.options.amsgrad;
                }
                const std::int64_t taken = std::min(left, story.bucket_elements - filled);
                left -= taken;
                filled += taken;
                touched = touched || has_gradient(param, step);
                if (filled == story.bucket_elements) {
                    end_bucket();
                }
            }
        }
    }
    end_bucket();
    return figures;
}

std::uint64_t largest_touched_bytes(const Story& story, bool restarted, int rank, int step,
                                    std::size_t groups) {
    const optim::Shape& mesh = restarted ? story.load_mesh : story.mesh;
    std::uint64_t largest = 0;
    for (std::size_t g = 0; g < groups; ++g) {
        const std::uint64_t kinds = story.groups[g].options.amsgrad ? 3 : 2;
        for (const StoryParam& param : story.groups[g].params) {
            const auto elements =
                static_cast<std::uint64_t>(local_elements(param, mesh, restarted, rank));
            largest = std::max(largest, has_gradient(param, step) ? elements * kinds * 4 : 0);
        }
    }
    return largest;
}

std::string coverage_fault(const std::vector<int>& holders, const optim::Shape& mesh,
                           const std::vector<optim::Placement>& placements) {
    std::int64_t expected = 1;
    for (std::size_t axis = 0; axis < mesh.size(); ++axis) {
        expected *= placements[axis] == optim::Placement::replicate() ? mesh[axis] : 1;
    }
    for (std::size_t i = 0; i < holders.size(); ++i) {
        if (holders[i] != expected) {
            return fmt::format("element {} is on {} ranks, expected {}", i, holders[i], expected);
        }
    }
    return {};
}

}  // namespace swaplab::properties
