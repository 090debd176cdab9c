#include "scenario/play/orders.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace swaplab::harness::scenario {

void OrderRecord::begin_as(const Orders& orders, std::size_t process, int rank) {
    if (const auto found = orders.find({process, rank}); found != orders.end()) {
        begin = found->second;
    }
}

std::size_t OrderRecord::choose(std::size_t count) {
    OrderChoice choice{0, count};
    if (taken.size() < begin.size()) {
        choice = begin[taken.size()];
    }
    if (choice.count != count) {
        throw sim::DeviceError("the story did something else after the same choices",
                               {{"operation", "schedule = exhaustive"},
                                {"expected", std::to_string(choice.count)},
                                {"found", std::to_string(count)}});
    }
    taken.push_back(choice);
    return choice.taken;
}

Orders next_orders(Orders taken) {
    while (!taken.empty()) {
        const auto last = std::prev(taken.end());
        std::vector<OrderChoice>& choices = last->second;
        while (!choices.empty() && choices.back().taken + 1 == choices.back().count) {
            choices.pop_back();
        }
        if (!choices.empty() && !SWAPLAB_MUTANT("scenario.one_order")) {
            ++choices.back().taken;
            return taken;
        }
        taken.erase(last);
    }
    return {};
}

std::size_t fewest_orders(const Orders& taken) {
    std::size_t least = 1;
    for (const auto& [rank, choices] : taken) {
        for (const OrderChoice& choice : choices) {
            least += choice.count - 1;
        }
    }
    return least;
}

bool has_every_order(const Run& run) {
    return run.start.every_order ||
           std::any_of(run.steps.begin(), run.steps.end(),
                       [](const Step& step) { return step.after.every_order; });
}

}  // namespace swaplab::harness::scenario
