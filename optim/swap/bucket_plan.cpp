#include "swap/bucket_plan.hpp"

#include "swaplab/sim/units.hpp"

#include <algorithm>
#include <utility>

namespace swaplab::optim {
namespace {

/// Host regions start on a page, so that no page ever belongs to two buckets.
constexpr std::uint64_t region_alignment_bytes = 4096;

}  // namespace

std::uint64_t BucketPlan::append(const std::vector<FlatParameter>& parameters, std::size_t arena,
                                 std::int64_t bucket_elements) {
    std::uint64_t arena_bytes = 0;
    Bucket open;
    const auto close = [&](std::int64_t next_kinds) {
        if (open.elements > 0) {
            open.arena = arena;
            open.arena_offset_bytes = sim::round_up(arena_bytes, region_alignment_bytes);
            arena_bytes = open.arena_offset_bytes + open.bytes();
            buckets.push_back(std::move(open));
        }
        open = Bucket{};
        open.kinds = next_kinds;
    };
    for (const FlatParameter& parameter : parameters) {
        const ParamId id = segments_of.size();
        segments_of.emplace_back();
        const std::int64_t kinds = parameter.amsgrad ? 3 : 2;
        if (parameter.elements > 0 && kinds != open.kinds) {
            close(kinds);
        }
        for (std::int64_t done = 0; done < parameter.elements;) {
            const std::int64_t count =
                std::min(parameter.elements - done, bucket_elements - open.elements);
            segments_of[id].push_back({buckets.size(), open.segments.size()});
            open.segments.push_back({id, done, open.elements, count});
            open.elements += count;
            done += count;
            if (open.elements == bucket_elements) {
                close(kinds);
            }
        }
    }
    close(2);
    return arena_bytes;
}

std::uint64_t BucketPlan::largest_bucket_bytes() const noexcept {
    std::uint64_t largest = 0;
    for (const Bucket& bucket : buckets) {
        largest = std::max(largest, bucket.bytes());
    }
    return largest;
}

std::vector<FlatParameter> flat_parameters(const std::vector<ParamGroup>& groups) {
    std::vector<FlatParameter> flat;
    for (const ParamGroup& group : groups) {
        for (const ParameterPtr& parameter : group.params) {
            flat.push_back({parameter->data.local_numel(), group.options.amsgrad});
        }
    }
    return flat;
}

}  // namespace swaplab::optim
