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

using Rows = std::vector<std::vector<std::string>>;
using Findings = std::vector<const Finding*>;
using sim::format_bytes;
using sim::with_thousands;

std::string count_of(std::size_t n, const std::string& singular, const std::string& plural) {
    return fmt::format("{} {}", with_thousands(n), n == 1 ? singular : plural);
}

std::string with_shape(const std::string& key, const Shape& shape) {
    return key + " " + optim::to_string(shape);
}

std::string place_of(const std::optional<StoredItem>& item) {
    return item ? fmt::format("{} at {}", item->relative_path, with_thousands(item->offset_bytes))
                : "no item";
}

/// Header row, at most 8 rows, and how many more there are.
std::string rows_text(Rows rows, std::vector<std::string> header, bool all) {
    const std::size_t more = all || rows.size() <= rows_shown ? 0 : rows.size() - rows_shown;
    rows.resize(rows.size() - more);
    rows.insert(rows.begin(), std::move(header));
    std::string text = aligned(rows, "  ");
    if (more > 0) {
        text += fmt::format("  ... and {} more (--all)\n", with_thousands(more));
    }
    return text;
}

std::string line(const std::string& word, const std::string& text) {
    return fmt::format("  {:<6} {}\n", word, text);
}

struct Sums {
    std::int64_t lost = 0;
    std::int64_t elements = 0;
};

Sums sums_of(const Findings& findings) {
    Sums sums;
    std::set<std::string> keys;
    for (const Finding* finding : findings) {
        sums.lost += finding->elements_lost;
        sums.elements += keys.insert(finding->key).second ? finding->elements : 0;
    }
    return sums;
}

std::set<std::string> keys_of(const Findings& findings) {
    std::set<std::string> keys;
    for (const Finding* finding : findings) {
        keys.insert(finding->key);
    }
    return keys;
}

// --- lost-shards ---

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
                "DTensors");
}

std::string lost_shards(const InspectReport& report, const Findings& findings, bool all) {
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
                     {"key", "saved", "parameter", "kept", "lost", "elements lost"}, all) +
           line("cause", std::string(certain ? "" : "most likely ") +
                             "plain local tensors were saved under one key per moment; the writer "
                             "kept one rank's and dropped the others without a word") +
           line("means", meaning_of_lost(findings)) + advice_on_lost(report);
}

// --- exchanged-chunks ---

std::size_t chunk_count(const InspectReport& report, const std::set<std::string>& keys) {
    std::size_t count = 0;
    for (const TensorReport& tensor : report.tensors) {
        count += keys.contains(tensor.key) ? tensor.chunks.size() : 0;
    }
    return count;
}

std::string exchanged_chunks(const InspectReport& report, const Findings& findings, bool all) {
    Rows rows;
    for (const Finding* f : findings) {
        const std::uint64_t size = size_of(f->header->dtype);
        const auto bytes = static_cast<std::uint64_t>(f->elements_lost) * size;
        rows.push_back(
            {with_shape(f->key, f->saved),
             optim::to_string(*f->chunk) + "   " + format_bytes(bytes),
             fmt::format("{}, {}", place_of(f->item), format_bytes(f->item->length_bytes)),
             optim::to_string(f->header->stored_shape) + "   " +
                 format_bytes(f->header->payload_bytes)});
    }
    const auto keys = keys_of(findings);
    const Sums sums = sums_of(findings);
    return fmt::format(
               "finding  exchanged-chunks: {} of {} chunks of {} name another item than the one "
               "stored; {} cannot be reached\n",
               findings.size(), chunk_count(report, keys),
               keys.size() == 1 ? *keys.begin() : count_of(keys.size(), "key", "keys"),
               share(sums.lost, sums.elements, "elements")) +
           rows_text(std::move(rows), {"key", ".metadata says", "file, item", "item holds"}, all) +
           line("means",
                "all data are in the files, addresses are swapped. PyTorch: the same ranks "
                "on the version that wrote it load silently") +
           line("",
                "and miss these rows; a load that assembles the tensor stops with an assertion "
                "after other rows were overwritten") +
           line("cause",
                "as written by torch 2.14 and 2.15 for uneven FSDP over TP (the directory "
                "does not name its writer)") +
           line("do",
                "save the model again with a version that writes it correctly (torch 2.8 does); "
                "the data files themselves are whole");
}

// --- missing-file, truncated-file ---

/// PyTorch reads file by file, in the order in which keys first name them, and writes into live
/// tensors as it goes: how many have changed when it meets the first item that is not there.
std::pair<std::size_t, std::size_t> overwritten_before_failure(const InspectReport& report) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<std::pair<std::string, bool>>> by_file;
    const auto add = [&](const std::string& key, const std::optional<StoredItem>& item,
                         std::uint64_t there_bytes) {
        if (item) {
            auto& items = by_file[item->relative_path];
            if (items.empty()) {
                order.push_back(item->relative_path);
            }
            items.emplace_back(key, there_bytes == item->length_bytes);
        }
    };
    std::set<std::string> tensors;
    for (const TensorReport& tensor : report.tensors) {
        tensors.insert(tensor.key);
        for (const ChunkReport& chunk : tensor.chunks) {
            add(tensor.key, chunk.chunk.stored, chunk.there_bytes);
        }
    }
    for (const ObjectReport& object : report.objects) {
        add(object.key, object.stored, object.there_bytes);
    }
    std::set<std::string> changed;
    for (const std::string& path : order) {
        for (const auto& [key, there] : by_file[path]) {
            if (!there) {
                return {changed.size(), tensors.size()};
            }
            if (tensors.contains(key)) {
                changed.insert(key);
            }
        }
    }
    return {changed.size(), tensors.size()};
}

std::string file_rows(const Findings& findings, bool all) {
    Rows rows;
    for (const Finding* f : findings) {
        rows.push_back({f->key, f->chunk ? optim::to_string(*f->chunk) : "object",
                        fmt::format("{} to {}", with_thousands(f->item->offset_bytes),
                                    with_thousands(f->item->offset_bytes + f->item->length_bytes)),
                        fmt::format("{} of {}", with_thousands(f->there_bytes),
                                    with_thousands(f->item->length_bytes)),
                        f->chunk ? share(f->elements_lost, f->elements, "") : "all"});
    }
    return rows_text(std::move(rows), {"key", "chunk", "item bytes", "there", "elements lost"},
                     all);
}

std::string one_file(const InspectReport& report, const Findings& findings, bool all) {
    const std::string& path = findings.front()->file;
    const auto file = std::find_if(report.files.begin(), report.files.end(),
                                   [&](const FileReport& f) { return f.path == path; });
    std::int64_t elements = 0;
    for (const TensorReport& tensor : report.tensors) {
        elements += optim::numel(tensor.shape);
    }
    const auto [changed, tensors] = overwritten_before_failure(report);
    return fmt::format("finding  {}: {} {}, .metadata needs {}; {} of {} keys, {} cannot be read\n",
                       name_of(findings.front()->code), path,
                       file->exists ? "has " + format_bytes(file->bytes) : "is not there",
                       format_bytes(file->needed_bytes), keys_of(findings).size(),
                       report.tensors.size() + report.objects.size(),
                       share(sums_of(findings).lost, elements, "elements")) +
           file_rows(findings, all) +
           line("means", fmt::format("PyTorch notices only after it has overwritten {} of {} live "
                                     "tensors, wholly or in part",
                                     changed, tensors)) +
           line("do",
                "copy the file again from its source and compare sizes; else an older "
                "checkpoint");
}

std::string file_faults(const InspectReport& report, const Findings& findings, bool all) {
    std::map<std::string, Findings> by_file;
    for (const Finding* finding : findings) {
        by_file[finding->file].push_back(finding);
    }
    std::string text;
    for (const auto& entry : by_file) {
        text += one_file(report, entry.second, all);
    }
    return text;
}

// --- the rest ---

std::string chunk_faults(const std::string& title, const std::string& means,
                         const std::string& advice, const Findings& findings, bool all) {
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
           rows_text(std::move(rows), {"key", "chunk", "file", "what"}, all) +
           line("means", means) + line("do", advice);
}

std::string steps(const std::string& title, const std::string& means, const Findings& findings,
                  bool all) {
    Rows rows;
    for (const Finding* f : findings) {
        rows.push_back({f->key, f->detail});
    }
    return fmt::format("finding  {}: {}\n", name_of(findings.front()->code), title) +
           rows_text(std::move(rows), {"key", "step"}, all) + line("means", means) +
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
               count_of(files, "data file", "data files"), format_bytes(bytes)) +
           line("means",
                "the save ended early, or .metadata was not copied: nothing here can be "
                "read without it") +
           line("do",
                "look for .metadata where this copy came from; else resume from an older "
                "checkpoint");
}

std::string bad_metadata(const Findings& findings, bool all) {
    if (findings.front()->key.empty()) {
        return "finding  bad-metadata: " + findings.front()->detail + "\n" +
               line("means", "no key of this directory can be read; nothing was executed") +
               line("do",
                    "copy .metadata again from its source; else resume from an older checkpoint");
    }
    return chunk_faults(
        fmt::format(".metadata contradicts the rest in {}",
                    count_of(findings.size(), "place", "places")),
        "PyTorch stops in the middle of the load, or reads other data than were saved",
        "check that .metadata and data files belong to one save", findings, all);
}

std::string one_code(const InspectReport& report, const Findings& findings, bool all) {
    const Sums sums = sums_of(findings);
    const std::string lost = share(sums.lost, sums.elements, "elements");
    const std::string older = "copy the files again from their source; else an older checkpoint";
    switch (findings.front()->code) {
        case FindingCode::unfinished_save:
            return unfinished_save(report);
        case FindingCode::bad_metadata:
            return bad_metadata(findings, all);
        case FindingCode::missing_file:
        case FindingCode::truncated_file:
            return file_faults(report, findings, all);
        case FindingCode::short_item:
            return chunk_faults(count_of(findings.size(), "item holds", "items hold") +
                                    " fewer bytes than its chunk needs",
                                "PyTorch stops in the middle of the load", older, findings, all);
        case FindingCode::unreadable_item:
            return chunk_faults(count_of(findings.size(), "item", "items") + " cannot be opened",
                                "PyTorch stops in the middle of the load", older, findings, all);
        case FindingCode::exchanged_chunks:
            return exchanged_chunks(report, findings, all);
        case FindingCode::out_of_bounds:
            return chunk_faults(count_of(findings.size(), "chunk reaches", "chunks reach") +
                                    " outside of its tensor",
                                "PyTorch fails or reads other rows", older, findings, all);
        case FindingCode::overlap:
            return chunk_faults(lost + " lie in more than one chunk",
                                "what PyTorch loads there depends on the order of reading", older,
                                findings, all);
        case FindingCode::gap:
            return chunk_faults(lost + " lie in no chunk",
                                "PyTorch leaves them as they were, silently", older, findings, all);
        case FindingCode::lost_shards:
            return lost_shards(report, findings, all);
        case FindingCode::impossible_step:
            return steps(count_of(findings.size(), "step is", "steps are") +
                             " negative, fractional or beyond 16,777,216",
                         "bias correction of the next step is meaningless", findings, all);
        case FindingCode::step_disagreement:
            break;
    }
    return steps(
        count_of(findings.size(), "parameter has", "parameters have") + " several steps at once",
        "shards of one parameter would be corrected for different times", findings, all);
}

}  // namespace

std::string share(std::int64_t part, std::int64_t whole, const std::string& noun) {
    const double percent =
        whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    return fmt::format("{} of {}{}{} ({:.1f} %)", with_thousands(static_cast<std::uint64_t>(part)),
                       with_thousands(static_cast<std::uint64_t>(whole)), noun.empty() ? "" : " ",
                       noun, percent);
}

std::string findings_text(const InspectReport& report, bool all) {
    std::string text;
    for (std::size_t begin = 0; begin < report.findings.size();) {
        Findings same;
        const FindingCode code = report.findings[begin].code;
        for (; begin < report.findings.size() && report.findings[begin].code == code; ++begin) {
            same.push_back(&report.findings[begin]);
        }
        text += one_code(report, same, all);
    }
    return text;
}

}  // namespace swaplab::harness
