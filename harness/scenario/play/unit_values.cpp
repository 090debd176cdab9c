// The units of amounts, from the definitions in docs/scenarios.md and not from the optimizer that
// is measured with them.

#include "scenario/play/record.hpp"

#include <algorithm>

namespace swaplab::harness::scenario {
namespace {

constexpr std::int64_t float_bytes = 4;

struct LocalParam {
    std::int64_t elements = 0;
    bool has_gradient = true;
};

/// A stretch of the flat parameter order without a forced bucket border.
struct Stretch {
    std::int64_t kinds = 2;
    std::vector<LocalParam> params;
};

std::int64_t local_elements(const SetUp& set_up, const std::string& name, int rank) {
    const ParamSpec* spec = set_up.find(name);
    if (spec == nullptr) {
        return 0;
    }
    const auto box = spec->shard(set_up.mesh).box_of(rank);
    return box ? optim::numel(box->sizes) : 0;
}

std::vector<Stretch> stretches_of(const SetUp& set_up, int rank,
                                  const std::vector<std::string>& without_gradient) {
    std::vector<Stretch> out;
    for (const GroupSpec& group : set_up.groups) {
        const std::int64_t kinds = group.options.amsgrad ? 3 : 2;
        if (out.empty() || group.added || out.back().kinds != kinds) {
            out.push_back({kinds, {}});
        }
        for (const std::string& name : group.params) {
            const bool none = std::find(without_gradient.begin(), without_gradient.end(), name) !=
                              without_gradient.end();
            out.back().params.push_back({local_elements(set_up, name, rank), !none});
        }
    }
    return out;
}

}  // namespace

UnitValues unit_values(const SetUp& set_up, int rank,
                       const std::vector<std::string>& without_gradient) {
    UnitValues out;
    out.chunk = static_cast<std::int64_t>(set_up.chunk_bytes);
    std::int64_t touched = 0;
    for (const Stretch& stretch : stretches_of(set_up, rank, without_gradient)) {
        std::int64_t total = 0;
        std::int64_t last_touched = -1;
        for (const LocalParam& param : stretch.params) {
            out.params += param.elements * float_bytes;
            out.moments += param.elements * float_bytes * stretch.kinds;
            out.largest = std::max(out.largest, param.elements * float_bytes);
            if (param.has_gradient && param.elements > 0) {
                const std::int64_t first = total / set_up.bucket_elements;
                const std::int64_t last = (total + param.elements - 1) / set_up.bucket_elements;
                touched += last - std::max(first, last_touched + 1) + 1;
                last_touched = last;
            }
            total += param.elements;
        }
        out.slot = std::max(out.slot,
                            std::min(total, set_up.bucket_elements) * float_bytes * stretch.kinds);
    }
    out.grads = out.params;
    out.ring = std::min<std::int64_t>(set_up.slots, touched) * out.slot;
    return out;
}

}  // namespace swaplab::harness::scenario
