#include "scenario/language/build.hpp"
#include "scenario/language/patch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

/// Builds the expectations of one subject table.
class ExpectationBuilder {
  public:
    ExpectationBuilder(const std::string& label, const std::string& name, Subject subject,
                       const NodeEntry& entry, const SetUp& set_up, StoryNames& names,
                       std::vector<Expectation>& out, Diagnostics& diagnostics)
        : label_(label),
          name_(text_or(entry.value, "name", name)),
          subject_(subject),
          table_(entry.value),
          at_(entry.at),
          set_up_(set_up),
          names_(names),
          out_(out),
          diagnostics_(diagnostics) {}

    void build() {
        select_ = read_selectors();
        const std::size_t before = out_.size();
        if (subject_ == Subject::refused || subject_ == Subject::error) {
            failure();
        } else if (subject_ == Subject::findings) {
            add("is", table_.find("is"), Relation::equals).names = texts(table_, "is");
        } else if (is_memory(subject_)) {
            memory(table_, BytesOf::requested);
            for (const BytesOf other :
                 {BytesOf::rounded, BytesOf::occupied, BytesOf::reserved, BytesOf::worst}) {
                const Node* node = table_.find(std::string(name_of(other)));
                if (node != nullptr && node->is(Kind::table)) {
                    memory(*node, other);
                }
            }
            refuse_tags("occupied");
            refuse_tags("reserved");
        } else {
            others();
        }
        if (out_.size() == before) {
            cannot_fail(at_, fmt::format("{} expects nothing", name_of(subject_)));
        }
    }

  private:
    void cannot_fail(Position at, const std::string& why) {
        diagnostics_.error("cannot-fail", at, why, "an expectation must be able to fail");
    }

    Selectors read_selectors() {
        Selectors select;
        const auto of = texts(table_, "of");
        select.of = select_params(of, set_up_, table_.place_of("of"), diagnostics_);
        select.keys = texts(table_, "key");
        if (subject_ != Subject::trace) {
            select.tags = texts(table_, "tag");
        }
        if (const Node* group = table_.find("group")) {
            select.group = static_cast<std::size_t>(group->integer);
            if (*select.group >= set_up_.groups.size()) {
                cannot_fail(group->at, fmt::format("group = {} selects nothing", group->integer));
            }
        }
        select.rank_sum = text_or(table_, "rank", "") == "sum";
        select.ranks = read_ranks("rank");
        const std::string view = text_or(table_, "view", "");
        if (!view.empty() && (subject_ == Subject::params || table_.find("in") != nullptr)) {
            cannot_fail(table_.place_of("view"),
                        fmt::format("view = \"{}\": {} have no views", view,
                                    subject_ == Subject::params ? "parameters" : "saves"));
        }
        select.step_view = view != "state_dict";
        select.state_dict_view = view != "step";
        select.in = text_or(table_, "in", "");
        if (!select.in.empty()) {
            use_save(select.in, table_.place_of("in"));
        }
        select.all_elements = text_or(table_, "elements", "any") == "all";
        select.up_to = read_bytes("up_to");
        select.above = read_bytes("above");
        select.since = read_since();
        return select;
    }

    void refuse_tags(const char* bytes_of) {
        const Node* figures = table_.find(bytes_of);
        if (figures != nullptr && table_.find("tag") != nullptr) {
            diagnostics_.error("bad-value", figures->at,
                               fmt::format("{} bytes are not known by tag", bytes_of),
                               "worst, rounded and plain ones are");
        }
    }

    std::optional<std::size_t> read_since() {
        const Node* node = table_.find("since");
        if (node == nullptr) {
            return std::nullopt;
        }
        const auto& labels = names_.labels;
        const auto found = std::find(labels.begin(), labels.end(), node->text);
        const auto here = std::find(labels.begin(), labels.end(), label_);
        if (found >= here) {
            diagnostics_.error("no-such-name", node->at,
                               fmt::format("no step \"{}\" before this one", node->text),
                               "since is the label of an earlier step");
            return std::nullopt;
        }
        const auto step = static_cast<std::size_t>(found - labels.begin());
        if (names_.lives_of_labels[step] != names_.lives) {
            diagnostics_.error(
                "bad-value", node->at,
                fmt::format("a restart since \"{}\": its device is gone", node->text),
                "since is the label of a step of this process");
        }
        return step;
    }

    std::vector<int> read_ranks(const char* key) {
        std::vector<int> ranks;
        const Node* node = table_.find(key);
        if (node == nullptr || node->is(Kind::text)) {
            return ranks;
        }
        for (const Node& item : node->is(Kind::list) ? node->items : std::vector<Node>{*node}) {
            if (item.integer >= set_up_.world_size) {
                cannot_fail(item.at, fmt::format("{} = {} selects nothing: the world has {} ranks",
                                                 key, item.integer, set_up_.world_size));
            }
            ranks.push_back(static_cast<int>(item.integer));
        }
        return ranks;
    }

    std::optional<Amount> read_bytes(const char* key) {
        const Node* node = table_.find(key);
        Diagnostics reported_already;
        return node == nullptr ? std::nullopt
                               : read_amount(*node, AmountOf::bytes, key, reported_already);
    }

    void use_save(const std::string& name, Position at) {
        StoryNames::Saved* saved = names_.find(name);
        if (saved == nullptr) {
            diagnostics_.error("no-such-name", at,
                               fmt::format("no save or checkpoint \"{}\" before this step", name),
                               "there are: " + join(names_.saved_names()));
            return;
        }
        saved->used = true;
        if (subject_ == Subject::cover || subject_ == Subject::files) {
            require_files(*saved, name, at);
        }
    }

    void require_files(const StoryNames::Saved& saved, const std::string& name, Position at) {
        if (saved.via != Via::dcp) {
            diagnostics_.error("bad-value", at,
                               fmt::format("\"{}\" is a state dict in memory: it has no {}", name,
                                           name_of(subject_)));
        }
    }

    Expectation& add(const std::string& word, const Node* value, Relation relation) {
        Expectation expectation;
        const std::string subject(name_of(subject_));
        const std::string middle = name_.empty() ? "" : name_ + ".";
        expectation.at = value != nullptr ? table_.place_of(word) : at_;
        expectation.path = fmt::format("{}.{}{}.{}", label_, middle, subject, word);
        expectation.text =
            fmt::format("expect.{}.{} = {}", subject, word, value != nullptr ? show(*value) : "");
        expectation.subject = subject_;
        expectation.word = word;
        expectation.relation = relation;
        expectation.select = select_;
        out_.push_back(std::move(expectation));
        return out_.back();
    }

    void failure() {
        Expectation& expectation = add("", nullptr, Relation::equals);
        expectation.path.pop_back();  // one path for naming, kind and what is left
        expectation.text = fmt::format("expect.{} = {}", name_of(subject_), show(table_));
        expectation.error.naming = texts(table_, "naming");
        expectation.error.kind =
            text_or(table_, "kind", subject_ == Subject::refused ? "rejected" : "");
        const Node* naming = table_.find("naming");
        if (naming == nullptr || expectation.error.naming.empty()) {
            cannot_fail(naming != nullptr ? naming->at : at_,
                        fmt::format("{} without naming", name_of(subject_)));
        }
        const std::string on = text_or(table_, "on", "all");
        expectation.error.on = read_ranks("on");
        expectation.error.on_survivors = on == "survivors";
        expectation.error.on_all = on == "all" && expectation.error.on.empty();
        const std::string leaves = text_or(table_, "leaves", "unchanged");
        expectation.error.leaves = leaves == "torn"       ? ErrorSpec::Leaves::torn
                                   : leaves == "anything" ? ErrorSpec::Leaves::anything
                                                          : ErrorSpec::Leaves::unchanged;
        if (const Node* within = table_.find("within")) {
            expectation.error.within_ms = read_duration(*within, "within", diagnostics_);
            if (expectation.error.within_ms.value_or(0) >= set_up_.timeout_ms) {
                cannot_fail(within->at, fmt::format("a step that takes {} ms is a hang anyway",
                                                    set_up_.timeout_ms));
            }
        }
    }

    void memory(const Node& table, BytesOf bytes_of) {
        for (const char* word : {"peak", "rise", "kept", "now", "slope"}) {
            figure(table, word, AmountOf::bytes, bytes_of);
        }
    }

    void others() {
        switch (subject_) {
            case Subject::h2d:
            case Subject::d2h:
            case Subject::d2d:
            case Subject::read:
            case Subject::written:
            case Subject::syncs:
                figure(table_, "bytes", AmountOf::bytes);
                figure(table_, "count", AmountOf::count);
                break;
            case Subject::cover:
                figure(table_, "missing", AmountOf::count);
                figure(table_, "repeated", AmountOf::count);
                break;
            case Subject::files:
                files();
                break;
            case Subject::buffers:
                if (const Node* kind = table_.find("kind")) {
                    add("kind", kind, Relation::equals).names = texts(table_, "kind");
                }
                reference("same_as", Relation::same_as);
                break;
            case Subject::trace:
                if (table_.find("same_as") != nullptr) {
                    reference("same_as", Relation::same_as);
                    out_.back().names = texts(table_, "tag");
                }
                break;
            default:
                states();
                break;
        }
    }

    void files() {
        figure(table_, "bytes", AmountOf::bytes);
        figure(table_, "count", AmountOf::count);
        if (const Node* present = table_.find("present")) {
            add("present", present, Relation::present).names = texts(table_, "present");
        }
        if (const Node* absent = table_.find("absent")) {
            add("absent", absent, Relation::absent).names = texts(table_, "absent");
        }
        reference("same_as", Relation::same_as);
        reference("differs_from", Relation::differs_from);
    }

    void states() {
        reference("same_as", Relation::same_as);
        reference("differs_from", Relation::differs_from);
        const Node* value = table_.find("is");
        if (value == nullptr) {
            return;
        }
        add("is", value, Relation::equals).value = *value;
        if (subject_ == Subject::state || subject_ == Subject::everything) {
            diagnostics_.error("bad-value", value->at,
                               fmt::format("{} is not one value", name_of(subject_)),
                               "use same_as, or params, moments, steps, groups");
        }
        for (const NodeEntry& entry : value->entries) {
            if (subject_ != Subject::groups) {
                (void)select_params({entry.key}, set_up_, entry.at, diagnostics_);
            }
        }
    }

    void figure(const Node& table, const char* word, AmountOf what,
                BytesOf bytes_of = BytesOf::requested) {
        const Node* node = table.find(word);
        if (node == nullptr) {
            return;
        }
        if (!node->is(Kind::table)) {
            bounded(word, *node, *node, what, Relation::equals, bytes_of);
            return;
        }
        for (const NodeEntry& entry : node->entries) {
            if (entry.key == "same_as") {
                if (select_.since || std::string_view(word) == "slope") {
                    diagnostics_.error("bad-value", entry.at,
                                       "figures of several steps have no like there");
                }
                Expectation& expectation = figure_of(word, *node, Relation::same_as, bytes_of);
                resolve(expectation, entry.value);
            } else {
                const Relation relation = entry.key == "at_most"    ? Relation::at_most
                                          : entry.key == "at_least" ? Relation::at_least
                                                                    : Relation::equals;
                bounded(word, *node, entry.value, what, relation, bytes_of);
            }
        }
    }

    Expectation& figure_of(const char* word, const Node& node, Relation relation,
                           BytesOf bytes_of) {
        Expectation& expectation = add(word, &node, relation);
        expectation.at = node.at;
        expectation.bytes_of = bytes_of;
        if (bytes_of != BytesOf::requested) {
            const std::string middle = name_.empty() ? "" : name_ + ".";
            expectation.path = fmt::format("{}.{}{}.{}.{}", label_, middle, name_of(subject_),
                                           name_of(bytes_of), word);
            expectation.text = fmt::format("expect.{}.{}.{} = {}", name_of(subject_),
                                           name_of(bytes_of), word, show(node));
        }
        return expectation;
    }

    void bounded(const char* word, const Node& node, const Node& bound, AmountOf what,
                 Relation relation, BytesOf bytes_of) {
        const auto amount = read_amount(bound, what, word, diagnostics_);
        Expectation& expectation = figure_of(word, node, relation, bytes_of);
        expectation.at = bound.at;
        if (!amount) {
            return;
        }
        expectation.amount = amount;
        const bool plain = !amount->derived();
        const std::int64_t value = plain ? amount->value({}).value_or(0) : 0;
        if (relation == Relation::at_least && plain && value <= 0 && expectation.word != "kept") {
            cannot_fail(bound.at, fmt::format("{} at least {} always holds", word, amount->text));
        }
        if (relation == Relation::at_most && subject_ == Subject::device &&
            bytes_of != BytesOf::worst && plain &&
            value >= static_cast<std::int64_t>(set_up_.capacity_bytes)) {
            cannot_fail(bound.at,
                        fmt::format("{} at most {}: the device has no more", word, amount->text));
        }
    }

    void reference(const char* word, Relation relation) {
        const Node* value = table_.find(word);
        if (value != nullptr) {
            resolve(add(word, value, relation), *value);
        }
    }

    void resolve(Expectation& expectation, const Node& value) {
        using RKind = Reference::Kind;
        Reference& reference = expectation.reference;
        reference.name = value.text;
        if (value.text == "before" || value.text == "start") {
            reference.kind = value.text == "before" ? RKind::before : RKind::start;
            if (label_ == "end" && reference.kind == RKind::before) {
                missing(value, "\"before\" belongs to a step");
            }
            return;
        }
        if (value.text == "uninterrupted" || value.text == "adamw") {
            reference.kind = value.text == "adamw" ? RKind::adamw : RKind::uninterrupted;
            if (!names_.history_known) {
                missing(value, fmt::format("\"{}\" has no history to follow after a given "
                                           "checkpoint was loaded: compare with the checkpoint",
                                           value.text));
            }
            return;
        }
        resolve_name(expectation, value);
    }

    void resolve_name(Expectation& expectation, const Node& value) {
        Reference& reference = expectation.reference;
        if (names_.find(value.text) != nullptr) {
            reference.kind = Reference::Kind::save;
            use_save(value.text, value.at);
            const bool figures = is_memory(subject_) || is_traffic(subject_) ||
                                 subject_ == Subject::trace || subject_ == Subject::buffers;
            if (figures) {
                missing(value, fmt::format("\"{}\" is something saved: it has no {}", value.text,
                                           name_of(subject_)));
            }
            return;
        }
        const auto& labels = names_.labels;
        const auto found = std::find(labels.begin(), labels.end(), value.text);
        if (found == labels.end()) {
            std::vector<std::string> all = labels;
            const auto saved = names_.saved_names();
            all.insert(all.end(), saved.begin(), saved.end());
            all.insert(all.end(), {"before", "start", "uninterrupted", "adamw"});
            const std::string near = nearest(value.text, all);
            missing(value, fmt::format("nothing is named \"{}\"{}", value.text,
                                       near.empty() ? "" : "; nearest: " + near));
            return;
        }
        if (value.text == label_) {
            cannot_fail(value.at, fmt::format("step \"{}\" is always the same as itself", label_));
        }
        reference.kind = Reference::Kind::label;
        reference.step_index = static_cast<std::size_t>(found - labels.begin());
    }

    void missing(const Node& value, const std::string& what) {
        diagnostics_.error("no-such-name", value.at, what,
                           "before, start, a label, a save, uninterrupted, adamw");
    }

    const std::string& label_;
    std::string name_;
    Subject subject_;
    const Node& table_;
    Position at_;
    const SetUp& set_up_;
    StoryNames& names_;
    std::vector<Expectation>& out_;
    Diagnostics& diagnostics_;
    Selectors select_;
};

}  // namespace

StoryNames::Saved* StoryNames::find(const std::string& name) {
    const auto found = std::find_if(saves.begin(), saves.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    return found == saves.end() ? nullptr : &found->second;
}

std::vector<std::string> StoryNames::saved_names() const {
    std::vector<std::string> out;
    for (const auto& [name, saved] : saves) {
        out.push_back(name);
    }
    return out;
}

void build_expectations(const Node& expect, const std::string& label, const SetUp& set_up,
                        StoryNames& names, std::vector<Expectation>& out,
                        Diagnostics& diagnostics) {
    if (expect.is(Kind::list)) {
        for (const Node& item : expect.items) {
            build_expectations(item, label, set_up, names, out, diagnostics);
        }
        return;
    }
    const std::string name = text_or(expect, "name", "");
    const std::size_t before = out.size();
    for (const NodeEntry& entry : expect.entries) {
        const auto subject = subject_from_name(entry.key);
        if (!subject || *subject == Subject::runs || !entry.value.is(Kind::table)) {
            continue;  // reported by check_words()
        }
        ExpectationBuilder(label, name, *subject, entry, set_up, names, out, diagnostics).build();
        const bool early = !names.trained && names.history_known &&
                           (*subject == Subject::moments || *subject == Subject::state);
        if (early) {
            diagnostics.warn("before-training", entry.at,
                             "moments are compared before any training step: all are zero");
        }
    }
    // Twins of a path are told apart by name. Relations of one figure share it on purpose.
    for (std::size_t i = before; i < out.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const bool same_figure =
                out[i].amount && out[j].amount && out[i].relation != out[j].relation;
            if (out[i].path == out[j].path && !same_figure) {
                diagnostics.error("name-taken", out[i].at,
                                  fmt::format("two expectations \"{}\"", out[i].path),
                                  "give one of them a name");
            }
        }
    }
}

}  // namespace swaplab::harness::scenario
