#pragma once

/// The switches of the specimen.

#include "swaplab/harness/specimen.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace swaplab::harness {

/// In the order of defects().
enum class Defect : std::uint8_t {
    stale_groups,
    stale_moments,
    device_init,
    device_cast,
    cast_stays,
    local_moments,
    none_leaf,
    reinit_on_load,
    reinit_zeroes,
    hook_restore,
    drops_added_groups,
    step_per_group,
    absent_is_fatal,
    zero_for_missing,
    step_restarts,
    alias_on_load,
    by_position,
    shape_unchecked,
    plain_accepted,
    tear_unmarked,
    slots_pile_up,
    slots_stay,
    slots_leak,
    updates_aside,
    slots_unordered,
    frees_unwaited,
    download_unwaited,
    unchecked_read,
    exists_check_on_rank_0,
    sync_skipped,
};

/// A set of defects.
class DefectSet {
  public:
    /// Throws ArgumentError for an unknown name, naming the nearest.
    explicit DefectSet(const std::vector<std::string>& names);

    [[nodiscard]] bool has(Defect defect) const noexcept {
        return (bits_ & (std::uint64_t{1} << static_cast<unsigned>(defect))) != 0;
    }

  private:
    std::uint64_t bits_ = 0;
};

}  // namespace swaplab::harness
