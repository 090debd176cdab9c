#include "inspect/coverage.hpp"
#include "inspect/findings.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

namespace swaplab::harness {
namespace {

Finding finding_of(FindingCode code, const TensorReport& tensor, std::optional<Box> box,
                   std::int64_t elements) {
    Finding finding;
    finding.code = code;
    finding.key = tensor.key;
    finding.saved = tensor.shape;
    finding.chunk = std::move(box);
    finding.elements = optim::numel(tensor.shape);
    finding.elements_lost = elements;
    return finding;
}

}  // namespace

void find_tiling_faults(InspectReport& report) {
    for (const TensorReport& tensor : report.tensors) {
        std::vector<Box> inside;
        for (const ChunkReport& chunk : tensor.chunks) {
            if (is_inside(chunk.chunk.box, tensor.shape) ||
                SWAPLAB_MUTANT("inspect.no_bounds_check")) {
                inside.push_back(chunk.chunk.box);
            } else {
                report.findings.push_back(
                    finding_of(FindingCode::out_of_bounds, tensor, chunk.chunk.box, 0));
            }
        }
        const Coverage coverage = cover(tensor.shape, inside);
        if (!coverage.complete) {
            report.findings.push_back(finding_of(FindingCode::bad_metadata, tensor, {}, 0));
            report.findings.back().detail =
                fmt::format("{} chunks overlap in too many places to count them", inside.size());
            continue;
        }
        const std::int64_t twice = coverage.covered_twice_or_more();
        if (twice > 0 && !SWAPLAB_MUTANT("inspect.no_overlap_check")) {
            report.findings.push_back(
                finding_of(FindingCode::overlap, tensor, coverage.first_overlap, twice));
        }
        const std::int64_t missing = coverage.elements - coverage.covered();
        if (missing > 0 && !SWAPLAB_MUTANT("inspect.no_gap_check")) {
            report.findings.push_back(
                finding_of(FindingCode::gap, tensor, coverage.first_gap, missing));
        }
    }
}

}  // namespace swaplab::harness
