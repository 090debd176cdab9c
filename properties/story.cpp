#include "story.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

namespace swaplab::properties {
namespace {

using optim::AdamWOptions;
using optim::Placement;
using optim::Shape;

/// Row counts around the multiples of both world sizes and buckets.
rc::Gen<Shape> any_shape() {
    return rc::gen::exec([] {
        Shape shape(*rc::gen::inRange<std::size_t>(0, 3));
        for (std::int64_t& size : shape) {
            size =
                *rc::gen::weightedOneOf<std::int64_t>({{1, rc::gen::just<std::int64_t>(0)},
                                                       {2, rc::gen::just<std::int64_t>(1)},
                                                       {6, rc::gen::inRange<std::int64_t>(2, 8)}});
        }
        return shape;
    });
}

std::vector<Placement> any_placements(const Shape& shape, const Shape& mesh) {
    std::vector<Placement> placements(mesh.size());
    if (shape.empty()) {
        return placements;
    }
    for (Placement& placement : placements) {
        const int dims = static_cast<int>(shape.size());
        const int dim = *rc::gen::inRange(-1, dims);
        placement = dim < 0 ? Placement::replicate() : Placement::shard(dim);
    }
    return placements;
}

Shape any_mesh() {
    return *rc::gen::elementOf(std::vector<Shape>{{1}, {2}, {3}, {4}, {2, 2}, {1, 2}});
}

AdamWOptions any_options() {
    AdamWOptions options;
    options.lr = *rc::gen::elementOf(std::vector<double>{0.01, 0.1, 0.003});
    const bool slow = *rc::gen::arbitrary<bool>();
    options.beta1 = slow ? 0.9 : 0.5;
    options.beta2 = slow ? 0.999 : 0.5;
    options.weight_decay = *rc::gen::elementOf(std::vector<double>{0.0, 0.01});
    options.amsgrad = *rc::gen::arbitrary<bool>();
    options.maximize = *rc::gen::arbitrary<bool>();
    return options;
}

StoryParam any_param(const std::string& name, const Story& story, bool resharded) {
    StoryParam param;
    param.name = name;
    param.shape = *any_shape();
    param.placements = any_placements(param.shape, story.mesh);
    param.load_placements =
        resharded ? any_placements(param.shape, story.load_mesh) : param.placements;
    param.absent = *rc::gen::weightedOneOf<std::uint32_t>(
        {{3, rc::gen::just<std::uint32_t>(0)}, {1, rc::gen::inRange<std::uint32_t>(1, 256)}});
    return param;
}

std::string list_of(const std::vector<Placement>& placements) {
    std::vector<std::string> quoted;
    for (const Placement& placement : placements) {
        quoted.push_back('"' + optim::to_string(placement) + '"');
    }
    return fmt::format("[{}]", fmt::join(quoted, ", "));
}

/// The `train` steps number `first` to `last` - 1, one each where gradients are absent.
std::string train_steps(const Story& story, int first, int last) {
    std::string text;
    for (int step = first; step < last; ++step) {
        std::vector<std::string> absent;
        for (const StoryGroup& group : story.groups) {
            for (const StoryParam& param : group.params) {
                if ((param.absent >> static_cast<unsigned>(step) & 1U) != 0) {
                    absent.push_back('"' + param.name + '"');
                }
            }
        }
        text += absent.empty()
                    ? std::string("{ train = 1 }, ")
                    : fmt::format("{{ train = {{ none = [{}] }} }}, ", fmt::join(absent, ", "));
    }
    return text;
}

void show_params(const Story& story, std::ostream& os) {
    os << "param = [\n";
    for (const StoryGroup& group : story.groups) {
        for (const StoryParam& param : group.params) {
            os << fmt::format("  {{ name = \"{}\", shape = [{}], placements = {} }},\n", param.name,
                              fmt::join(param.shape, ", "), list_of(param.placements));
        }
    }
    os << "]\n";
}

void show_steps(const Story& story, std::ostream& os) {
    const int end = story.steps_before + story.steps_after;
    os << "step = [" << train_steps(story, 0, story.steps_before)
       << fmt::format("{{ save = {{ to = \"x\", via = \"{}\" }} }},",
                      story.via == Story::Via::dcp ? "dcp" : "memory");
    if (story.restart) {
        os << fmt::format(" {{ restart = {{ world = {{ mesh = [{}] }}, param = {{",
                          fmt::join(story.load_mesh, ", "));
        const char* separator = " ";
        for (const StoryGroup& group : story.groups) {
            for (const StoryParam& param : group.params) {
                os << separator << param.name << ".placements = " << list_of(param.load_placements);
                separator = ", ";
            }
        }
        os << " } } },";
    } else {
        os << " { train = 1 },";
    }
    os << " { load = \"x\" },";
    if (story.lr_after_load) {
        os << fmt::format(" {{ set = {{ group = 0, lr = {} }} }},", *story.lr_after_load);
    }
    os << ' ' << train_steps(story, story.steps_before, end) << "]\n";
}

void show_groups(const Story& story, std::ostream& os) {
    os << "group = [\n";
    for (const StoryGroup& group : story.groups) {
        std::vector<std::string> names;
        for (const StoryParam& param : group.params) {
            names.push_back('"' + param.name + '"');
        }
        const AdamWOptions& options = group.options;
        os << fmt::format(
            "  {{ params = [{}], lr = {}, betas = [{}, {}], weight_decay = {}, "
            "amsgrad = {}, maximize = {} }},\n",
            fmt::join(names, ", "), options.lr, options.beta1, options.beta2, options.weight_decay,
            options.amsgrad, options.maximize);
    }
    os << "]\n";
}

}  // namespace

int world_size(const Shape& mesh) {
    return static_cast<int>(optim::numel(mesh));
}

rc::Gen<Story> any_story() {
    return rc::gen::exec([] {
        Story story;
        story.mesh = any_mesh();
        story.via = *rc::gen::arbitrary<bool>() ? Story::Via::dcp : Story::Via::memory;
        story.restart = *rc::gen::weightedElement<bool>({{2, true}, {1, false}});
        const bool resharded = story.via == Story::Via::dcp && story.restart &&
                               *rc::gen::weightedElement<bool>({{2, true}, {1, false}});
        story.load_mesh = resharded ? any_mesh() : story.mesh;
        story.groups.resize(*rc::gen::inRange<std::size_t>(1, 4));
        int name = 0;
        for (StoryGroup& group : story.groups) {
            group.options = any_options();
            group.params.resize(*rc::gen::inRange<std::size_t>(1, 4));
            for (StoryParam& param : group.params) {
                param = any_param("p" + std::to_string(name++), story, resharded);
            }
        }
        story.last_group_joins_late = story.groups.size() > 1 && *rc::gen::arbitrary<bool>();
        story.bucket_elements = *rc::gen::inRange<std::int64_t>(1, 40);
        story.slots = *rc::gen::inRange(1, 5);
        story.keep_slots = *rc::gen::arbitrary<bool>();
        story.schedule =
            *rc::gen::element(sim::Schedule::fifo, sim::Schedule::latest, sim::Schedule::random);
        story.seed = *rc::gen::inRange<std::uint64_t>(1, 1000);
        story.steps_before = *rc::gen::inRange(0, 4);
        story.steps_after = *rc::gen::inRange(1, 4);
        if (*rc::gen::arbitrary<bool>()) {
            story.lr_after_load = 0.25;
        }
        return story;
    });
}

void showValue(const Story& story, std::ostream& os) {
    os << fmt::format(
        "\nscenario = {{ name = \"a property failed\", why = \"found by search\", seed = {} }}\n"
        "world.mesh = [{}]\ndevice.schedule = \"{}\"\n"
        "optimizer = {{ bucket = \"{} elements\", slots = {}, keep_slots = {} }}\n",
        story.seed, fmt::join(story.mesh, ", "), sim::name_of(story.schedule),
        story.bucket_elements, story.slots, story.keep_slots);
    show_params(story, os);
    show_groups(story, os);
    if (story.last_group_joins_late) {
        os << "# the last group joins by add_param_group after the first step\n";
    }
    show_steps(story, os);
}

}  // namespace swaplab::properties
