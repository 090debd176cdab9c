#include "swaplab/optim/state_dict.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::optim {
namespace {

constexpr std::size_t lines_max = 8;

std::string rank_name(int rank) {
    return fmt::format("rank {}", rank);
}

std::string line_of(const Mismatch& mismatch) {
    std::string text = "\n  " + mismatch.key;
    if (!mismatch.parameter.empty()) {
        text += "   parameter " + mismatch.parameter;
    }
    if (!mismatch.found.empty()) {
        text += "   saved " + mismatch.found;
    }
    if (!mismatch.expected.empty()) {
        text += "   live " + mismatch.expected;
    }
    return mismatch.detail.empty() ? text : text + "   " + mismatch.detail;
}

/// One line per fact: what several ranks report alike is said once.
std::vector<std::string> lines_of(const std::vector<Mismatch>& mismatches) {
    std::vector<std::string> lines;
    for (const Mismatch& mismatch : mismatches) {
        std::string line = line_of(mismatch);
        if (std::find(lines.begin(), lines.end(), line) == lines.end()) {
            lines.push_back(std::move(line));
        }
    }
    return lines;
}

std::string advice_for_load(const std::vector<Mismatch>& mismatches) {
    const bool lost = std::any_of(mismatches.begin(), mismatches.end(),
                                  [](const Mismatch& m) { return !m.lost_ranks.empty(); });
    return lost ? "load with load_states = false, or load an older checkpoint; swaplab inspect "
                  "shows what is left"
                : "load state that was saved from this model and these groups, or leave it out "
                  "(load_states, load_args = false)";
}

std::string describe(const std::string& subject, int world_size,
                     const std::vector<Mismatch>& mismatches, const std::string& advice) {
    std::string text =
        fmt::format("{} refused on {} of {} ranks; parameters, moments and steps are unchanged",
                    subject, world_size, world_size);
    const std::vector<std::string> lines = lines_of(mismatches);
    for (std::size_t i = 0; i < std::min(lines.size(), lines_max); ++i) {
        text += lines[i];
    }
    if (lines.size() > lines_max) {
        text += fmt::format("\n  ... {} more", lines.size() - lines_max);
    }
    return text + "\n  do  " + (advice.empty() ? advice_for_load(mismatches) : advice);
}

void add(sim::ErrorFields& fields, const char* name, const std::string& value) {
    const sim::ErrorField field{name, value};
    if (!value.empty() && std::find(fields.begin(), fields.end(), field) == fields.end()) {
        fields.push_back(field);
    }
}

sim::ErrorFields fields_of(const std::string& operation, const std::string& subject,
                           const std::vector<Mismatch>& mismatches) {
    sim::ErrorFields fields{{"operation", operation}, {"subject", subject}};
    for (const Mismatch& mismatch : mismatches) {
        add(fields, "rank", rank_name(mismatch.rank));
        add(fields, "parameter", mismatch.parameter);
        add(fields, "key", mismatch.key);
        add(fields, "expected", mismatch.expected);
        add(fields, "found", mismatch.found);
        for (const int lost : mismatch.lost_ranks) {
            add(fields, "lost_rank", rank_name(lost));
        }
    }
    return fields;
}

}  // namespace

CheckpointRejected::CheckpointRejected(const std::string& operation, const std::string& subject,
                                       int world_size, std::vector<Mismatch> mismatches,
                                       const std::string& advice)
    : std::runtime_error(describe(subject, world_size, mismatches, advice)),
      mismatches_(std::move(mismatches)),
      fields_(fields_of(operation, subject, mismatches_)) {}

}  // namespace swaplab::optim
