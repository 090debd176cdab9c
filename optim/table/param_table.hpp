#pragma once

/// Parameters, groups and step counters of one optimizer, indexed by ParamId: the one place that
/// knows which parameter is in which group.

#include "swaplab/optim/param_group.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace swaplab::optim {

/// Position in the flat order: group by group, parameter by parameter.
using ParamId = std::size_t;

/// Adam's counters, one per parameter; shared with live state dicts. A deque: growing moves none.
using Steps = std::deque<std::int64_t>;

/// The largest step that a float32 counter in a checkpoint holds exactly.
inline constexpr std::int64_t step_max = std::int64_t{1} << 24U;

class ParamTable {
  public:
    /// Throws ArgumentError for what no group may have (see check_group) and for an empty list.
    ParamTable(int rank, std::vector<ParamGroup> groups);

    /// Throws ArgumentError when `group` cannot be appended: invalid options, a parameter that some
    /// group has, not float32 device tensors of one local shape, not this rank's part.
    void check_group(const ParamGroup& group) const;
    /// Appends a group that check_group accepted. Ids so far stay; generation() moves on.
    void append(ParamGroup group);

    [[nodiscard]] std::vector<ParamGroup>& groups() noexcept { return groups_; }
    [[nodiscard]] const std::vector<ParamGroup>& groups() const noexcept { return groups_; }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
    [[nodiscard]] int rank() const noexcept { return rank_; }

    [[nodiscard]] Parameter& parameter(ParamId id) const;
    [[nodiscard]] std::size_t group_of(ParamId id) const { return entries_[id].group; }
    /// The group's options now.
    [[nodiscard]] const AdamWOptions& options(ParamId id) const;
    /// As it was when the group came in: it decides which moments exist and never changes.
    [[nodiscard]] bool amsgrad(ParamId id) const { return entries_[id].amsgrad; }
    /// Keys of the moments of `id`: exp_avg, exp_avg_sq and, with amsgrad, max_exp_avg_sq.
    [[nodiscard]] std::vector<std::string> moment_keys(ParamId id) const;
    [[nodiscard]] const std::shared_ptr<Steps>& steps() const noexcept { return steps_; }

    /// Ids of the parameters that a step would update now. Throws ArgumentError when groups were
    /// changed in a way that a step cannot follow (parameters added or removed, amsgrad switched),
    /// when a gradient does not fit, or when a counter would pass step_max.
    [[nodiscard]] std::vector<ParamId> to_step() const;

  private:
    struct Entry {
        std::size_t group;
        std::size_t index;
        bool amsgrad;
        const Parameter* identity;  ///< to notice a replaced one; never followed
    };

    void check_parameter(const Parameter& parameter) const;
    void check_groups_unchanged() const;

    int rank_;
    std::vector<ParamGroup> groups_;
    std::vector<Entry> entries_;
    std::set<std::string> names_;
    std::shared_ptr<Steps> steps_ = std::make_shared<Steps>();
    std::uint64_t generation_ = 0;
};

/// A 0-dim float32 tensor that reads and writes counter `id` of `steps`: the live form of `step`.
/// Writing throws ArgumentError for what is no whole number from 0 to step_max.
[[nodiscard]] Tensor live_step(std::shared_ptr<Steps> steps, ParamId id);

}  // namespace swaplab::optim
