#pragma once

/// The choices of a program that is run again and again until every combination was taken.

#include "swaplab/sim/error.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace swaplab::sim {

/// The choices of one run, and which runs are left: depth first, last choice first. choose() throws
/// DeviceError when the same choices lead to another number of ways.
class ChoiceTree {
  public:
    std::size_t choose(std::size_t count) {
        if (depth_ == path_.size()) {
            path_.push_back({0, count});
        }
        const Choice& choice = path_[depth_++];
        if (choice.count != count) {
            throw DeviceError("the explored program did something else after the same choices",
                              {{"operation", "explore"},
                               {"expected", std::to_string(choice.count)},
                               {"found", std::to_string(count)}});
        }
        return choice.taken;
    }

    /// Goes on to the next run; false when there is none.
    bool next() {
        depth_ = 0;
        while (!path_.empty() && path_.back().taken + 1 == path_.back().count) {
            path_.pop_back();
        }
        if (path_.empty()) {
            return false;
        }
        ++path_.back().taken;
        return true;
    }

  private:
    struct Choice {
        std::size_t taken;
        std::size_t count;
    };
    std::vector<Choice> path_;
    std::size_t depth_ = 0;
};

}  // namespace swaplab::sim
