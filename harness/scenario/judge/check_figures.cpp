// Verdicts on bytes and counts.

#include "scenario/judge/check_judge.hpp"
#include "scenario/language/patch.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace swaplab::harness::scenario {
namespace {

bool tag_chosen(const std::vector<std::string>& tags, const std::string& tag) {
    return tags.empty() || std::any_of(tags.begin(), tags.end(), [&](const std::string& glob) {
               return glob_matches(glob, tag);
           });
}

std::int64_t pick(const Bytes2& bytes, const Expectation& expectation) {
    return expectation.bytes_of == BytesOf::rounded ? bytes.rounded : bytes.requested;
}

std::int64_t sum(const std::map<std::string, Bytes2>& tags, const Bytes2& total,
                 const Expectation& expectation) {
    if (expectation.select.tags.empty()) {
        return pick(total, expectation);
    }
    std::int64_t out = 0;
    for (const auto& [tag, bytes] : tags) {
        out += tag_chosen(expectation.select.tags, tag) ? pick(bytes, expectation) : 0;
    }
    return out;
}

std::size_t kind_index(Subject subject) {
    return subject == Subject::device ? 0 : subject == Subject::pinned ? 1 : 2;
}

/// Calls give pinned and host memory back at once: no schedule changes what they occupy.
const MemoryFigures& figures_of(const StepRecord& record, const Expectation& expectation) {
    const std::size_t kind = kind_index(expectation.subject);
    if (expectation.bytes_of == BytesOf::worst && expectation.subject == Subject::device) {
        return record.worst.value();
    }
    if (expectation.bytes_of == BytesOf::reserved) {
        return record.reserved.at(kind);
    }
    return expectation.bytes_of == BytesOf::occupied ? record.occupied[kind] : record.memory[kind];
}

/// Figures of two stretches, one after the other, as one.
void append(MemoryFigures& figures, const MemoryFigures& more) {
    if (more.peak.requested > figures.peak.requested) {
        figures.tags_at_peak = more.tags_at_peak;
    }
    figures.peak = {std::max(figures.peak.requested, more.peak.requested),
                    std::max(figures.peak.rounded, more.peak.rounded)};
    figures.now = more.now;
    figures.tags_now = more.tags_now;
}

void append(StepRecord& figures, const StepRecord& more) {
    for (std::size_t kind = 0; kind < sim::memory_kind_count; ++kind) {
        append(figures.memory[kind], more.memory[kind]);
        append(figures.occupied[kind], more.occupied[kind]);
    }
    for (std::size_t kind = 0; kind < figures.reserved.size(); ++kind) {
        append(figures.reserved[kind], more.reserved[kind]);
    }
    if (figures.worst && more.worst) {
        append(*figures.worst, *more.worst);
    }
    figures.trace.insert(figures.trace.end(), more.trace.begin(), more.trace.end());
    figures.storage.insert(figures.storage.end(), more.storage.begin(), more.storage.end());
    figures.units = more.units;
}

std::int64_t memory_figure(const StepRecord& record, const Expectation& expectation,
                           const std::string& word) {
    const MemoryFigures& figures = figures_of(record, expectation);
    const std::int64_t before = sum(figures.tags_before, figures.before, expectation);
    const std::int64_t peak = sum(figures.tags_at_peak, figures.peak, expectation);
    const std::int64_t now = sum(figures.tags_now, figures.now, expectation);
    return word == "peak"   ? peak
           : word == "rise" ? peak - before
           : word == "kept" ? now - before
                            : now;
}

/// What passes by during a step, by size.
struct Traffic {
    std::int64_t bytes = 0;
    std::int64_t count = 0;
};

class TrafficCounter {
  public:
    TrafficCounter(const StepRecord& record, const Selectors& select)
        : up_to_(select.up_to ? select.up_to->value(record.units).value_or(0)
                              : std::numeric_limits<std::int64_t>::max()),
          above_(select.above ? select.above->value(record.units).value_or(0) : -1) {}

    void add(std::uint64_t bytes) {
        const auto size = static_cast<std::int64_t>(bytes);
        if (size <= up_to_ && size > above_) {
            sum_.bytes += size;
            ++sum_.count;
        }
    }
    [[nodiscard]] Traffic sum() const { return sum_; }

  private:
    std::int64_t up_to_;
    std::int64_t above_;
    Traffic sum_;
};

std::string_view operation_of(Subject subject) {
    return subject == Subject::h2d     ? "copy h2d"
           : subject == Subject::d2h   ? "copy d2h"
           : subject == Subject::d2d   ? "copy d2d"
           : subject == Subject::read  ? "read"
           : subject == Subject::syncs ? "synchronize"
                                       : "write";
}

std::int64_t traffic_figure(const StepRecord& record, const Expectation& expectation) {
    TrafficCounter counter(record, expectation.select);
    const std::string_view operation = operation_of(expectation.subject);
    const std::string pageable = std::string(operation) + " pageable";
    if (expectation.subject == Subject::read || expectation.subject == Subject::written) {
        for (const StorageOperation& each : record.storage) {
            if (each.operation == operation) {
                counter.add(each.bytes);
            }
        }
    } else {
        for (const sim::TraceEvent& each : record.trace) {
            if ((each.operation == operation || each.operation == pageable) &&
                tag_chosen(expectation.select.tags, each.tag)) {
                counter.add(each.bytes);
            }
        }
    }
    return expectation.word == "bytes" ? counter.sum().bytes : counter.sum().count;
}

std::string amount_text(std::int64_t value, const std::string& unit) {
    const std::string digits = sim::with_thousands(static_cast<std::uint64_t>(std::abs(value)));
    return fmt::format("{}{}{}{}", value < 0 ? "-" : "", digits, unit.empty() ? "" : " ", unit);
}

/// Tags whose bytes make up the figure, largest first.
std::vector<TagBytes> holders_of(const StepRecord& record, const Expectation& expectation,
                                 int rank) {
    const MemoryFigures& figures = figures_of(record, expectation);
    const bool at_peak = expectation.word == "peak" || expectation.word == "rise";
    const bool growth = expectation.word == "rise" || expectation.word == "kept";
    std::vector<TagBytes> out;
    for (const auto& [tag, bytes] : at_peak ? figures.tags_at_peak : figures.tags_now) {
        std::int64_t held = pick(bytes, expectation);
        const auto before = figures.tags_before.find(tag);
        if (growth && before != figures.tags_before.end()) {
            held -= pick(before->second, expectation);
        }
        if (held > 0 && tag_chosen(expectation.select.tags, tag)) {
            out.push_back({tag, rank, held});
        }
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const TagBytes& a, const TagBytes& b) { return a.bytes > b.bytes; });
    return out;
}

UnitValues& operator+=(UnitValues& a, const UnitValues& b) {
    a.params += b.params;
    a.grads += b.grads;
    a.moments += b.moments;
    a.largest += b.largest;
    a.slot += b.slot;
    a.ring += b.ring;
    a.chunk += b.chunk;
    return a;
}

}  // namespace

std::int64_t CheckJudge::measure(const StepRecord& record) const {
    return is_memory(expectation_.subject) ? memory_figure(record, expectation_, expectation_.word)
                                           : traffic_figure(record, expectation_);
}

std::int64_t CheckJudge::largest_growth(std::size_t rank) const {
    const auto& rounds = std::get<RepeatStep>(all_.run_.steps[*index_].action);
    const auto& steps = all_.records_.steps;
    const auto after = [&](std::size_t round) {  // from 1 on
        const std::size_t last = *index_ - 1 - (rounds.rounds - round) * rounds.steps;
        return memory_figure(steps[last].ranks.at(rank), expectation_, "now");
    };
    std::int64_t largest = after(2) - after(1);
    for (std::size_t round = 3; round <= rounds.rounds; ++round) {
        largest = std::max(largest, after(round) - after(round - 1));
    }
    return largest;
}

StepRecord CheckJudge::figures_on(std::size_t rank) const {
    const auto& steps = all_.records_.steps;
    const std::size_t here = index_.value_or(steps.size() - 1);
    const bool alone = !expectation_.select.since || SWAPLAB_MUTANT("judge.since_ignored");
    std::size_t step = alone ? here : *expectation_.select.since + 1;
    StepRecord figures = steps[step].ranks.at(rank);
    while (++step <= here) {
        append(figures, steps[step].ranks.at(rank));
    }
    return figures;
}

void CheckJudge::figure() {
    const bool compares = expectation_.relation == Relation::same_as ||
                          expectation_.relation == Relation::differs_from;
    const auto* reference = compares ? reference_ranks() : nullptr;
    if (compares && reference == nullptr) {
        return;
    }
    check_.unit = expectation_.word == "count" ? "" : "B";
    std::int64_t total = 0;
    std::int64_t expected_total = 0;
    UnitValues units;
    check_.ok = true;
    for (const int rank : chosen_ranks()) {
        const auto at = static_cast<std::size_t>(rank);
        if (compares && at >= reference->size()) {
            return fail(fmt::format("{} has no rank {}", reference_text(), rank));
        }
        const StepRecord record = figures_on(at);
        const std::int64_t measured =
            expectation_.word == "slope" ? largest_growth(at) : measure(record);
        const std::int64_t there = compares ? measure((*reference)[at]) : 0;
        total += measured;
        expected_total += there;
        units += record.units;
        if (!expectation_.select.rank_sum && check_.ok) {
            check_.units = record.units;
            const auto bound =
                compares ? std::optional(there) : expectation_.amount->value(record.units);
            conclude_figure(rank, measured, bound, fmt::format("rank {}", rank));
        }
    }
    if (expectation_.select.rank_sum) {
        check_.units = units;
        const auto bound =
            compares ? std::optional(expected_total) : expectation_.amount->value(units);
        conclude_figure(0, total, bound, "all ranks");
    }
}

void CheckJudge::conclude_figure(int rank, std::int64_t measured,
                                 std::optional<std::int64_t> expected, const std::string& what) {
    const Relation relation = expectation_.relation;
    check_.measured = measured;
    if (!expected) {
        return fail(fmt::format("{} is no whole number, {}", expectation_.amount->text, what));
    }
    const std::int64_t bound = *expected;
    check_.bound = bound;
    const bool good = relation == Relation::at_most        ? measured <= bound
                      : relation == Relation::at_least     ? measured >= bound
                      : relation == Relation::differs_from ? measured != bound
                                                           : measured == bound;
    const char* sign = relation == Relation::at_most        ? "at most "
                       : relation == Relation::at_least     ? "at least "
                       : relation == Relation::differs_from ? "other than "
                                                            : "";
    const std::string_view bytes_of = name_of(expectation_.bytes_of);
    const std::string name = fmt::format("{}{}{} {}", name_of(expectation_.subject),
                                         bytes_of.empty() ? "" : " ", bytes_of, expectation_.word);
    const std::string summary =
        fmt::format("{} {} (bound {}{})", name, amount_text(measured, check_.unit), sign,
                    amount_text(bound, check_.unit));
    if (good) {
        return pass(summary);
    }
    fail(fmt::format("{}, {}", summary, what));
    if (is_memory(expectation_.subject)) {
        describe_memory(rank, measured, bound);
    }
}

void CheckJudge::describe_memory(int rank, std::int64_t measured, std::int64_t bound) {
    const StepRecord record = figures_on(static_cast<std::size_t>(rank));
    const MemoryFigures& figures = figures_of(record, expectation_);
    std::string line =
        fmt::format("bytes    measured {}   bound {}   {} by {}", amount_text(measured, "B"),
                    amount_text(bound, "B"), measured > bound ? "over" : "under",
                    amount_text(std::abs(measured - bound), "B"));
    if (record.units.params > 0) {
        line +=
            fmt::format("   ({:.2f}x parameter bytes, {})",
                        static_cast<double>(measured) / static_cast<double>(record.units.params),
                        amount_text(record.units.params, "B"));
    }
    check_.details.push_back(line);
    check_.details.push_back(fmt::format("peak     rank {}; {} {} before, {} at the peak, {} after",
                                         rank, name_of(expectation_.subject),
                                         amount_text(pick(figures.before, expectation_), "B"),
                                         amount_text(pick(figures.peak, expectation_), "B"),
                                         amount_text(pick(figures.now, expectation_), "B")));
    if (expectation_.bytes_of == BytesOf::worst && expectation_.subject == Subject::device) {
        check_.details.push_back(
            fmt::format("worst    over all schedules; this one occupied at most {} and charged {}",
                        amount_text(record.occupied[0].peak.requested, "B"),
                        amount_text(record.memory[0].peak.requested, "B")));
    }
    check_.holders = holders_of(record, expectation_, rank);
    constexpr std::size_t shown = 4;
    std::string held;
    std::int64_t rest = 0;
    for (std::size_t i = 0; i < check_.holders.size(); ++i) {
        const TagBytes& holder = check_.holders[i];
        if (i < shown) {
            held += fmt::format("   {} {}", holder.tag, amount_text(holder.bytes, ""));
        } else {
            rest += holder.bytes;
        }
    }
    if (rest > 0) {
        held += fmt::format("   {} more: {}", check_.holders.size() - shown, amount_text(rest, ""));
    }
    if (!held.empty()) {
        check_.details.push_back("held by" + held.substr(1));
    }
}

void CheckJudge::cover() {
    const SavedContent* content = saved(expectation_.select.in);
    if (content == nullptr) {
        return;
    }
    const Selectors& select = expectation_.select;
    const auto has = [](const std::vector<std::string>& list, const std::string& one) {
        return list.empty() || std::find(list.begin(), list.end(), one) != list.end();
    };
    const bool missing = expectation_.word == "missing";
    std::int64_t measured = 0;
    std::int64_t elements = 0;
    std::vector<std::string> rows;
    for (const CoverRow& row : content->cover) {
        if (!has(select.of, row.param) || !has(select.keys, row.key)) {
            continue;
        }
        const std::int64_t one = missing ? row.missing : row.repeated;
        measured += one;
        elements += row.elements;
        if (one > 0) {
            rows.push_back(fmt::format("{}{}{} {} of {}", row.param, row.key.empty() ? "" : ".",
                                       row.key, one, row.elements));
        }
    }
    check_.unit = "elements";
    if (elements == 0) {
        return fail("nothing is selected: no tensor with an element");
    }
    conclude_figure(0, measured, expectation_.amount->value({}),
                    fmt::format("of {} elements in all", elements));
    if (!check_.ok && !rows.empty()) {
        constexpr std::size_t shown = 8;
        if (rows.size() > shown) {
            rows[shown] = fmt::format("and {} more", rows.size() - shown);
            rows.resize(shown + 1);
        }
        check_.details.push_back((missing ? "missing  " : "repeated ") + join(rows));
    }
}

void CheckJudge::files() {
    const SavedContent* content = saved(expectation_.select.in);
    if (content == nullptr) {
        return;
    }
    const Relation relation = expectation_.relation;
    if (expectation_.word == "bytes" || expectation_.word == "count") {
        std::int64_t bytes = 0;
        for (const FileRow& row : content->files) {
            bytes += static_cast<std::int64_t>(row.bytes);
        }
        const bool counts = expectation_.word == "count";
        check_.unit = counts ? "files" : "B";
        UnitValues units;
        for (const StepRecord& record : ranks()) {
            units += record.units;
        }
        conclude_figure(0, counts ? static_cast<std::int64_t>(content->files.size()) : bytes,
                        expectation_.amount->value(units), "in all files");
        return;
    }
    if (relation == Relation::present || relation == Relation::absent) {
        for (const std::string& glob : expectation_.names) {
            const bool any =
                std::any_of(content->files.begin(), content->files.end(),
                            [&](const FileRow& row) { return glob_matches(glob, row.name); });
            if (any != (relation == Relation::present)) {
                return fail(fmt::format("{} {}", glob, any ? "is there" : "is not there"));
            }
        }
        return pass(fmt::format("{} of {} names as expected", expectation_.names.size(),
                                expectation_.names.size()));
    }
    const SavedContent* other = saved(expectation_.reference.name);
    if (other == nullptr) {
        return;
    }
    const auto equal = [](const FileRow& a, const FileRow& b) {
        return a.name == b.name && a.sha256 == b.sha256;
    };
    const bool same = std::equal(content->files.begin(), content->files.end(), other->files.begin(),
                                 other->files.end(), equal);
    same == (relation == Relation::same_as)
        ? pass(fmt::format("{} files {}", content->files.size(), same ? "equal" : "differ"))
        : fail(fmt::format("the files {}", same ? "are equal" : "differ"));
}

}  // namespace swaplab::harness::scenario
