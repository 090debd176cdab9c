#pragma once

/// How the flat parameter order is cut into buckets. Holds ids and sizes only: never a pointer into
/// another container.

#include "table/param_table.hpp"

#include <cstdint>
#include <vector>

namespace swaplab::optim {

/// A run of elements of one parameter inside a bucket.
struct BucketSegment {
    ParamId parameter = 0;
    std::int64_t parameter_offset_elements = 0;
    std::int64_t bucket_offset_elements = 0;
    std::int64_t count_elements = 0;
};

/// A contiguous range of the flat parameter order. Its region in the arena and in a device slot is
/// [exp_avg | exp_avg_sq | max_exp_avg_sq] of all its elements.
struct Bucket {
    std::size_t arena = 0;
    std::uint64_t arena_offset_bytes = 0;
    std::int64_t elements = 0;
    std::int64_t kinds = 2;  ///< moments per element: 3 with amsgrad
    std::vector<BucketSegment> segments;

    [[nodiscard]] std::uint64_t bytes() const noexcept {
        return static_cast<std::uint64_t>(elements * kinds) * sizeof(float);
    }
    /// Byte offset in the region of moment `kind` (0, 1, 2) of element `element`.
    [[nodiscard]] std::uint64_t offset_of(std::int64_t kind, std::int64_t element) const noexcept {
        return static_cast<std::uint64_t>(kind * elements + element) * sizeof(float);
    }
};

/// What the cut needs to know of one parameter.
struct FlatParameter {
    std::int64_t elements = 0;
    bool amsgrad = false;
};

/// A segment by its place in the plan.
struct SegmentRef {
    std::size_t bucket = 0;
    std::size_t segment = 0;
};

struct BucketPlan {
    std::vector<Bucket> buckets;
    std::vector<std::vector<SegmentRef>> segments_of;  ///< by ParamId, in element order
    std::uint64_t generation = 0;                      ///< of the table that it was made from

    /// Adds buckets in arena `arena` for `parameters`, whose ids follow those that the plan knows.
    /// Returns the bytes that the arena needs. A bucket ends early where amsgrad changes.
    std::uint64_t append(const std::vector<FlatParameter>& parameters, std::size_t arena,
                         std::int64_t bucket_elements);
    [[nodiscard]] std::uint64_t largest_bucket_bytes() const noexcept;
};

/// The parameters of `groups` in flat order.
[[nodiscard]] std::vector<FlatParameter> flat_parameters(const std::vector<ParamGroup>& groups);

}  // namespace swaplab::optim
