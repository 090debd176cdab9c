#include "scenario/language/build.hpp"
#include "scenario/language/patch.hpp"
#include "scenario/language/rounds.hpp"
#include "scenario/language/vocabulary.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

class StoryBuilder {
  public:
    StoryBuilder(const Node& document, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
        story_.document = document;
        story_.now = build_set_up(story_.document, {}, diagnostics_);
        story_.names.labels = step_labels(story_.document);
    }

    void build(Run& run) {
        run.start = story_.now;
        for (const CheckpointSpec& checkpoint : story_.now.checkpoints) {
            StoryNames::Saved saved;
            saved.checkpoint = true;
            saved.at = checkpoint.at;
            take_name(checkpoint.name, saved, story_.names, diagnostics_);
        }
        check_labels();
        const Node* steps = story_.document.find("step");
        if (steps == nullptr || !steps->is(Kind::list) || steps->items.empty()) {
            diagnostics_.error("missing-key", story_.document.at, "no step: nothing is done");
            return;
        }
        if (steps->items.size() > max_steps) {
            diagnostics_.error("too-large", steps->items[max_steps].at,
                               fmt::format("a story has at most {} steps", max_steps),
                               "train = N does N training steps");
            return;
        }
        const std::vector<Node> all = steps->items;  // restart changes the document
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::string verb = verb_of(all[i]);
            if (!verb.empty()) {
                run.steps.push_back(build_step(all[i], verb, i));
            }
        }
        check_kills(run.steps);
        check_each(run.steps);
        check_lies(run.steps);
        if (const Node* finals = story_.document.find("expect")) {
            build_expectations(*finals, "end", story_.now, story_.names, run.finals, diagnostics_);
            check_slopes(run.finals, false);
        }
        add_default(Subject::findings, "end", story_.document.at, run.finals);
        report_unused();
    }

  private:
    static sim::FaultAction then_of(const std::string& word) {
        return word == "kill"    ? sim::FaultAction::kill
               : word == "stop"  ? sim::FaultAction::stop
               : word == "delay" ? sim::FaultAction::delay
               : word == "throw" ? sim::FaultAction::foreign
               : word == "flip"  ? sim::FaultAction::flip
               : word == "slow"  ? sim::FaultAction::slow
               : word == "late"  ? sim::FaultAction::late
                                 : sim::FaultAction::fail;
    }

    void check_kills(const std::vector<Step>& steps) {
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const bool last = i + 1 == steps.size();
            if (steps[i].ends_a_rank() && (last || steps[i + 1].verb != "restart")) {
                diagnostics_.error("after-kill", steps[i].at,
                                   "after a kill or stop the other ranks cannot go on together",
                                   "let restart be the next step");
            }
        }
    }

    void check_each(const std::vector<Step>& steps) {
        bool found = false;
        for (const Step& step : steps) {
            const bool each = step.fault && step.fault->each;
            if (each && found) {
                diagnostics_.error("bad-value", step.at,
                                   "one fault of a story has nth = \"each\": its passes are few, "
                                   "those of two are many");
            }
            found = found || each;
        }
    }

    /// What a disk has lost shows when power is, and not before.
    void check_lies(const std::vector<Step>& steps) {
        bool shows = false;
        for (std::size_t i = steps.size(); i-- > 0;) {
            const auto* restart = std::get_if<RestartStep>(&steps[i].action);
            shows = shows || (restart != nullptr && restart->lose_unsynced);
            if (!shows && steps[i].fault && steps[i].fault->disk_error == "lost") {
                diagnostics_.error("cannot-fail", steps[i].at,
                                   "nothing shows what is lost: no power is lost after it",
                                   "{ restart.lose_unsynced = true } loses it");
            }
        }
    }

    void check_labels() {
        const Node* steps = story_.document.find("step");
        for (std::size_t i = 0; i < story_.names.labels.size(); ++i) {
            const std::string& label = story_.names.labels[i];
            const auto first =
                std::find(story_.names.labels.begin(), story_.names.labels.end(), label);
            const auto index = static_cast<std::size_t>(first - story_.names.labels.begin());
            if (label.empty()) {
                continue;  // no verb: reported elsewhere
            }
            if (!is_plain(label) || label.find('.') != std::string::npos || is_reference(label)) {
                diagnostics_.error("bad-value", steps->items[i].at,
                                   "a label is letters, digits, _ and -, at most 64 of them, and "
                                   "none of \"before\", \"start\", \"end\", \"uninterrupted\", "
                                   "\"adamw\"");
            } else if (index < i) {
                diagnostics_.error("name-taken", steps->items[i].at,
                                   fmt::format("two steps with the label \"{}\"", label));
            }
        }
    }

    Step build_step(const Node& node, const std::string& verb, std::size_t index) {
        Step step;
        step.label = story_.names.labels[index];
        step.verb = verb;
        step.at = node.place_of(verb);
        step.before = story_.now;
        const Node& table = *node.find(verb);
        const bool fails = expects_failure(node);
        step.action = build_action(verb, table, fails, story_, diagnostics_);
        step.after = story_.now;
        story_.names.lives_of_labels.push_back(story_.names.lives);
        if (const Node* fault = node.find("fault")) {
            step.fault = build_fault(*fault, step.before.world_size);
        }
        if (const Node* expect = node.find("expect")) {
            implied_checkpoint_ = checkpoint_of(step.action);
            build_expectations(*expect, step.label, story_.now, story_.names, step.expect,
                               diagnostics_);
            fill_implied_checkpoint(step.expect);
            check_slopes(step.expect, std::holds_alternative<RepeatStep>(step.action));
        }
        if (!step.may_fail()) {
            add_default(Subject::runs, step.label, step.at, step.expect);
        }
        add_default(Subject::findings, step.label, step.at, step.expect);
        return step;
    }

    FaultSpec build_fault(const Node& node, std::int64_t ranks) {
        FaultSpec fault;
        fault.at = text_or(node, "at", "");
        fault.nth = count_or(node, "nth", 1);
        fault.each = text_or(node, "nth", "") == "each";
        fault.rank = static_cast<int>(count_or(node, "rank", 0));
        const std::string then = text_or(node, "then", "fail");
        fault.then = then_of(then);
        fault.disk_error = is_one_of(then, {"eio", "enospc", "short", "lost"}) ? then : "";
        fault.file = text_or(node, "file", "");
        fault.once = flag_or(node, "once", true);
        if (node.find("over") != nullptr) {
            fault.over_bytes = bytes_or(node, "over", 0);
        }
        if (const Node* by = node.find("by")) {
            Diagnostics reported_already;
            fault.by_ms = read_duration(*by, "by", reported_already).value_or(1);
        }
        check_fault(fault, node.at, ranks);
        check_delay(fault, node);
        return fault;
    }

    /// A rank that is late for longer than a step may take is stopped, not late.
    void check_delay(const FaultSpec& fault, const Node& node) {
        const bool delays = fault.then == sim::FaultAction::delay;
        if (delays != (fault.by_ms > 0)) {
            diagnostics_.error(delays ? "missing-key" : "bad-value", node.place_of("by"),
                               "then = \"delay\" and by = TIME belong together",
                               "fault = { at = \"write\", then = \"delay\", by = \"200 ms\" }");
        } else if (fault.by_ms >= story_.now.timeout_ms && !SWAPLAB_MUTANT("scenario.long_delay")) {
            diagnostics_.error(
                "bad-value", node.place_of("by"),
                fmt::format("a delay of {} ms is no shorter than the time limit of a step, {} ms",
                            fault.by_ms, story_.now.timeout_ms),
                "then = \"stop\" is a rank that never goes on");
        }
    }

    void check_fault(const FaultSpec& fault, Position at, std::int64_t ranks) {
        if (fault.rank >= ranks || fault.nth < 1) {
            diagnostics_.error("bad-value", at,
                               fmt::format("a fault is on one of {} ranks, nth >= 1", ranks));
        }
        if (fault.then == sim::FaultAction::flip && fault.at != "copy") {
            diagnostics_.error("bad-value", at, "only a copy can flip a bit: at = \"copy\"");
        }
        if (fault.then == sim::FaultAction::slow && fault.at != "copy") {
            diagnostics_.error("bad-value", at, "only a copy can be slow: at = \"copy\"");
        }
        if (fault.then == sim::FaultAction::late && fault.at != "copy" && fault.at != "launch") {
            diagnostics_.error("bad-value", at,
                               "only what is queued can fail late: at = \"copy\" or \"launch\"");
        }
        if (fault.over_bytes &&
            !is_one_of(fault.at, {"device_alloc", "pinned_alloc", "copy", "read", "write"})) {
            diagnostics_.error("bad-value", at, fmt::format("{} has no size to be over", fault.at));
        }
        check_disk_fault(fault, at);
    }

    void check_disk_fault(const FaultSpec& fault, Position at) {
        const bool of_files =
            is_one_of(fault.at, {"open", "read", "write", "fsync", "rename", "mkdir", "remove"});
        if (!of_files && (!fault.file.empty() || !fault.disk_error.empty())) {
            diagnostics_.error("bad-value", at,
                               fmt::format("{} is no operation of storage: it has no {}", fault.at,
                                           fault.file.empty() ? fault.disk_error : "file"));
        }
        if (fault.disk_error == "short" && !is_one_of(fault.at, {"read", "write"})) {
            diagnostics_.error("bad-value", at, "only read and write can be short");
        }
        if (fault.disk_error == "lost" && fault.at != "fsync") {
            diagnostics_.error("bad-value", at, "only fsync can be lost: it lies");
        }
    }

    static bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
        return std::find(words.begin(), words.end(), word) != words.end();
    }

    static bool expects_failure(const Node& node) {
        const Node* expect = node.find("expect");
        if (expect == nullptr) {
            return false;
        }
        const auto names_failure = [](const Node& table) {
            return table.find("refused") != nullptr || table.find("error") != nullptr;
        };
        return names_failure(*expect) ||
               std::any_of(expect->items.begin(), expect->items.end(), names_failure);
    }

    static std::string checkpoint_of(const Action& action) {
        if (const auto* save = std::get_if<SaveStep>(&action)) {
            return save->via == Via::dcp ? save->to : "";
        }
        if (const auto* load = std::get_if<LoadStep>(&action)) {
            return load->via == Via::dcp ? load->from : "";
        }
        return "";
    }

    void check_slopes(const std::vector<Expectation>& expectations, bool of_rounds) {
        for (const Expectation& expectation : expectations) {
            if (expectation.word == "slope" && !of_rounds) {
                diagnostics_.error("cannot-fail", expectation.at,
                                   "slope is the growth per round: it stands on a repeat step");
            }
        }
    }

    void fill_implied_checkpoint(std::vector<Expectation>& expectations) {
        for (Expectation& expectation : expectations) {
            const bool needs =
                expectation.subject == Subject::cover || expectation.subject == Subject::files;
            if (!needs || !expectation.select.in.empty()) {
                continue;
            }
            if (implied_checkpoint_.empty()) {
                diagnostics_.error("no-such-name", expectation.at,
                                   fmt::format("{} of which checkpoint? Give in = NAME",
                                               name_of(expectation.subject)));
                continue;
            }
            expectation.select.in = implied_checkpoint_;
            story_.names.find(implied_checkpoint_)->used = true;
        }
    }

    static void add_default(Subject subject, const std::string& label, Position at,
                            std::vector<Expectation>& out) {
        const bool given = std::any_of(out.begin(), out.end(),
                                       [&](const Expectation& e) { return e.subject == subject; });
        if (given) {
            return;
        }
        Expectation expectation;
        expectation.at = at;
        expectation.subject = subject;
        expectation.path = fmt::format("{}.{}", label, name_of(subject));
        expectation.text =
            subject == Subject::runs ? "the step runs to its end on every rank" : "no findings";
        expectation.by_default = true;
        out.push_back(std::move(expectation));
    }

    void report_unused() {
        for (const auto& [name, saved] : story_.names.saves) {
            if (!saved.used) {
                diagnostics_.error("unused", saved.at,
                                   fmt::format("\"{}\" is neither loaded nor looked at", name),
                                   "load it, compare with it, or look at its cover or files");
            }
        }
    }

    Diagnostics& diagnostics_;
    StoryState story_;
    std::string implied_checkpoint_;
};

}  // namespace

Run build_run(const Node& document, const Node& which, Diagnostics& diagnostics) {
    Run run;
    run.which = build_case(which, diagnostics);
    StoryBuilder(document, diagnostics).build(run);
    resolve_fails(run, diagnostics);
    return run;
}

}  // namespace swaplab::harness::scenario
