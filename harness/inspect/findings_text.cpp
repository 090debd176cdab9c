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

std::string chunk_faults(const std::string& title, const std::string& means,
                         const std::string& advice, const Findings& findings, const Look& look) {
    Rows rows;
    for (const Finding* f : findings) {
        const std::string chunk = f->chunk ? optim::to_string(*f->chunk) : "";
        rows.push_back({f->chunk ? with_shape(f->key, f->saved) : f->key, chunk,
                        f->item ? place_of(f->item) : "",
                        f->detail.empty() && f->elements_lost > 0
                            ? share(f->elements_lost, f->elements, "elements")
                            : f->detail});
    }
    return fmt::format("finding  {}: {}\n", name_of(findings.front()->code), title) +
           rows_text(std::move(rows), {"key", "chunk", "file", "what"}, look) +
           line("means", means) + line("do", advice);
}

std::string steps(const std::string& title, const std::string& means, const Findings& findings,
                  const Look& look) {
    Rows rows;
    for (const Finding* f : findings) {
        rows.push_back({f->key, f->detail});
    }
    return fmt::format("finding  {}: {}\n", name_of(findings.front()->code), title) +
           rows_text(std::move(rows), {"key", "step"}, look) + line("means", means) +
           line("do", "resume from an older checkpoint, or load without optimizer state");
}

std::string unfinished_save(const InspectReport& report) {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
    for (const FileReport& file : report.files) {
        files += file.path.ends_with(".distcp") ? 1U : 0U;
        bytes += file.path.ends_with(".distcp") ? file.bytes : 0;
    }
    return fmt::format(
               "finding  unfinished-save: no .metadata beside {} of {}; PyTorch writes it "
               "last\n",
               count_of(files, "data file"), format_bytes(bytes)) +
           line("means",
                "the save ended early, or .metadata was not copied: nothing here can be "
                "read without it") +
           line("do",
                "look for .metadata where this copy came from; else resume from an older "
                "checkpoint");
}

std::string bad_metadata(const Findings& findings, const Look& look) {
    if (findings.front()->key.empty()) {
        return "finding  bad-metadata: " + findings.front()->detail + "\n" +
               line("means", "no key of this directory can be read; nothing was executed") +
               line("do",
                    "copy .metadata again from its source; else resume from an older checkpoint");
    }
    return chunk_faults(
        fmt::format(".metadata contradicts the rest in {}", count_of(findings.size(), "place")),
        "PyTorch stops in the middle of the load, or reads other data than were saved",
        "check that .metadata and data files belong to one save", findings, look);
}

std::string one_code(const InspectReport& report, const Findings& findings, const Look& look) {
    const Sums sums = sums_of(findings);
    const std::string lost = share(sums.lost, sums.elements, "elements");
    const std::string older = "copy the files again from their source; else an older checkpoint";
    switch (findings.front()->code) {
        case FindingCode::unfinished_save:
            return unfinished_save(report);
        case FindingCode::bad_metadata:
            return bad_metadata(findings, look);
        case FindingCode::missing_file:
        case FindingCode::truncated_file:
            return file_faults_text(report, findings, look);
        case FindingCode::short_item:
            return chunk_faults(count_of(findings.size(), "item holds", "items hold") +
                                    " fewer bytes than its chunk needs",
                                "PyTorch stops in the middle of the load", older, findings, look);
        case FindingCode::unreadable_item:
            return chunk_faults(count_of(findings.size(), "item") + " cannot be opened",
                                "PyTorch stops in the middle of the load", older, findings, look);
        case FindingCode::exchanged_chunks:
            return exchanged_chunks_text(report, findings, look);
        case FindingCode::out_of_bounds:
            return chunk_faults(count_of(findings.size(), "chunk reaches", "chunks reach") +
                                    " outside of its tensor",
                                "PyTorch fails or reads other rows", older, findings, look);
        case FindingCode::overlap:
            return chunk_faults(lost + " lie in more than one chunk",
                                "what PyTorch loads there depends on the order of reading", older,
                                findings, look);
        case FindingCode::gap:
            return chunk_faults(lost + " lie in no chunk",
                                "PyTorch leaves them as they were, silently", older, findings,
                                look);
        case FindingCode::lost_shards:
            return lost_shards_text(report, findings, look);
        case FindingCode::impossible_step:
            return steps(count_of(findings.size(), "step is", "steps are") +
                             " negative, fractional or beyond 16,777,216",
                         "bias correction of the next step is meaningless", findings, look);
        case FindingCode::step_disagreement:
            break;
    }
    return steps(
        count_of(findings.size(), "parameter has", "parameters have") + " several steps at once",
        "shards of one parameter would be corrected for different times", findings, look);
}

}  // namespace

std::string findings_text(const InspectReport& report, const Look& look) {
    std::string text;
    for (std::size_t begin = 0; begin < report.findings.size();) {
        Findings same;
        const FindingCode code = report.findings[begin].code;
        for (; begin < report.findings.size() && report.findings[begin].code == code; ++begin) {
            same.push_back(&report.findings[begin]);
        }
        text += one_code(report, same, look);
    }
    return text;
}

}  // namespace swaplab::harness
