#include "inspect/finding_blocks.hpp"
#include "inspect/table.hpp"
#include "inspect/text.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace swaplab::harness {
namespace {

using sim::count_of;
using sim::format_bytes;
using sim::with_thousands;

std::string part_text(const RankPart& part) {
    if (!part.box) {
        return fmt::format("rank {}, range unknown", part.rank);
    }
    return optim::numel(part.box->sizes) == 0
               ? fmt::format("rank {}, nothing", part.rank)
               : fmt::format("rank {} {}", part.rank, optim::to_string(*part.box));
}

std::string parts_text(const std::vector<RankPart>& parts) {
    std::vector<std::string> texts;
    std::transform(parts.begin(), parts.end(), std::back_inserter(texts), part_text);
    return texts.empty() ? "unknown" : fmt::format("{}", fmt::join(texts, ", "));
}

/// Elements that all judged moments should have together.
std::int64_t moment_elements(const InspectReport& report, const Findings& lost) {
    std::int64_t sum = 0;
    for (const TensorReport& tensor : report.tensors) {
        sum += tensor.role == Role::moment ? optim::numel(tensor.shape) : 0;
    }
    for (const Unjudged& unjudged : report.unjudged) {
        sum -= optim::numel(unjudged.saved);
    }
    for (const Finding* finding : lost) {
        sum += finding->elements_lost;
    }
    return sum;
}

/// What loading does, as far as the shapes of the ranks' parts are known.
std::string meaning_of_lost(const Findings& findings) {
    bool known = true;
    bool equal = true;
    for (const Finding* finding : findings) {
        known = known && finding->lost && !finding->lost->empty();
        if (finding->lost) {
            equal = equal && std::all_of(finding->lost->begin(), finding->lost->end(),
                                         [&](const RankPart& part) {
                                             return part.box->sizes == finding->saved;
                                         });
        }
    }
    if (!known) {
        return "PyTorch loads such a file silently wherever the local shapes happen to fit";
    }
    if (!equal) {
        return "PyTorch refuses to load it (size mismatch); a load planner without that check "
               "overwrites the leading rows only";
    }
    const Finding& first = *findings.front();
    return fmt::format(
        "PyTorch loads this silently into {} equal shards: rank {} then trains with "
        "rank {}'s moments",
        first.lost->size() + 1, first.lost->front().rank, first.kept.front().rank);
}

std::string advice_on_lost(const InspectReport& report) {
    std::int64_t elements = 0;
    std::int64_t readable = 0;
    for (const TensorReport& tensor : report.tensors) {
        if (tensor.role != Role::parameter) {
            continue;
        }
        elements += optim::numel(tensor.shape);
        for (const ChunkReport& chunk : tensor.chunks) {
            readable += chunk.sound(tensor.dtype) ? optim::numel(chunk.chunk.box.sizes) : 0;
        }
    }
    const std::string fresh = "resume from an older checkpoint, or load without optimizer state";
    const std::string state =
        elements > 0 && elements == readable
            ? fmt::format("parameters are complete ({} of {} elements): {}",
                          with_thousands(static_cast<std::uint64_t>(readable)),
                          with_thousands(static_cast<std::uint64_t>(elements)), fresh)
            : fresh;
    return line("do", state) +
           line("",
                "(load_states = false) and accept fresh moments; from now on save moments as "
                "DTensors (docs/lost-shards.md)");
}

}  // namespace

std::string lost_shards_text(const InspectReport& report, const Findings& findings,
                             const Look& look) {
    Rows rows;
    for (const Finding* f : findings) {
        std::string parameter = with_shape(f->parameter, f->parameter_shape);
        if (!f->parameter_source.empty()) {
            parameter += " (" + f->parameter_source + ")";
        }
        rows.push_back({f->key, optim::to_string(f->saved), parameter, parts_text(f->kept),
                        f->lost ? parts_text(*f->lost) : "unknown",
                        share(f->elements_lost, f->elements, "")});
    }
    const bool certain = std::all_of(findings.begin(), findings.end(),
                                     [](const Finding* f) { return f->lost.has_value(); });
    return fmt::format("finding  lost-shards: {} smaller than {} parameter; {} are in no file\n",
                       count_of(findings.size(), "moment is", "moments are"),
                       findings.size() == 1 ? "its" : "their",
                       share(sums_of(findings).lost, moment_elements(report, findings),
                             "moment elements")) +
           rows_text(std::move(rows),
                     {"key", "saved", "parameter", "kept", "lost", "elements lost"}, look) +
           line("cause", std::string(certain ? "" : "most likely ") +
                             "plain local tensors were saved under one key per moment; the writer "
                             "kept one rank's and dropped the others without a word") +
           line("means", meaning_of_lost(findings)) + advice_on_lost(report);
}

}  // namespace swaplab::harness
