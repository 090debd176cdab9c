#include "scenario/build.hpp"
#include "scenario/patch.hpp"
#include "scenario/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

const Node& empty_table() {
    static const Node empty = make_table({});
    return empty;
}

const Node& table_or_empty(const Node& parent, std::string_view key) {
    const Node* table = parent.find(key);
    return table != nullptr && table->is(Kind::table) ? *table : empty_table();
}

bool leaves_its_directory(const std::string& file) {
    return file.front() == '/' || file.find("..") != std::string::npos;
}

/// A key of a save or load, else of [engine], else the default.
std::string engine_text(const Node& table, const Node& engine, const char* key,
                        const char* fallback) {
    return text_or(table, key, text_or(engine, key, fallback));
}

Via via_from(std::string_view name) {
    return name == "memory" ? Via::memory : name == "live" ? Via::live : Via::dcp;
}

class StoryBuilder {
  public:
    StoryBuilder(Node document, Diagnostics& diagnostics)
        : document_(std::move(document)), diagnostics_(diagnostics) {
        now_ = build_set_up(document_, {}, diagnostics_);
        names_.labels = step_labels(document_);
    }

    void build(Run& run) {
        run.start = now_;
        for (const CheckpointSpec& checkpoint : now_.checkpoints) {
            StoryNames::Saved saved;
            saved.checkpoint = true;
            saved.at = document_.place_of("checkpoint");
            take_name(checkpoint.name, saved);
        }
        check_labels();
        const Node* steps = document_.find("step");
        if (steps == nullptr || !steps->is(Kind::list) || steps->items.empty()) {
            diagnostics_.error("missing-key", document_.at, "no step: nothing is done");
            return;
        }
        for (std::size_t i = 0; i < steps->items.size(); ++i) {
            const Node step = steps->items[i];
            const std::string verb = verb_of(step);
            if (!verb.empty()) {
                run.steps.push_back(build_step(step, verb, i));
            }
        }
        if (const Node* finals = document_.find("expect")) {
            build_expectations(*finals, "end", now_, names_, run.finals, diagnostics_);
        }
        add_default(Subject::findings, "end", document_.at, run.finals);
        report_unused();
    }

  private:
    void take_name(const std::string& name, const StoryNames::Saved& saved) {
        const auto& labels = names_.labels;
        const bool reserved = name == "before" || name == "start" || name == "end" ||
                              name == "uninterrupted" || name == "adamw";
        if (reserved || std::find(labels.begin(), labels.end(), name) != labels.end()) {
            diagnostics_.error("name-taken", saved.at,
                               fmt::format("\"{}\" already names a step or a reference", name),
                               "labels, saves and checkpoints share one list of names");
        }
        if (StoryNames::Saved* old = names_.find(name)) {
            if (old->checkpoint) {
                diagnostics_.error("name-taken", saved.at,
                                   fmt::format("\"{}\" is a given checkpoint", name));
            }
            const bool used = old->used;
            *old = saved;
            old->used = used;
            return;
        }
        names_.saves.emplace_back(name, saved);
    }

    void check_labels() {
        const Node* steps = document_.find("step");
        for (std::size_t i = 0; i < names_.labels.size(); ++i) {
            const std::string& label = names_.labels[i];
            const auto first = std::find(names_.labels.begin(), names_.labels.end(), label);
            const auto index = static_cast<std::size_t>(first - names_.labels.begin());
            if (!label.empty() && index < i) {
                diagnostics_.error("name-taken", steps->items[i].at,
                                   fmt::format("two steps with the label \"{}\"", label));
            }
        }
    }

    Step build_step(const Node& node, const std::string& verb, std::size_t index) {
        Step step;
        step.label = names_.labels[index];
        step.verb = verb;
        step.at = node.place_of(verb);
        step.before = now_;
        const Node& table = *node.find(verb);
        const bool fails = expects_failure(node);
        step.action = build_action(verb, table, fails);
        step.after = now_;
        if (const Node* fault = node.find("fault")) {
            step.fault = FaultSpec{text_or(*fault, "at", ""), count_or(*fault, "nth", 1),
                                   static_cast<int>(count_or(*fault, "rank", 0)),
                                   text_or(*fault, "then", "fail") == "throw"};
            if (step.fault->rank >= step.before.world_size || step.fault->nth < 1) {
                diagnostics_.error(
                    "bad-value", fault->at,
                    fmt::format("a fault is on one of {} ranks, nth >= 1", step.before.world_size));
            }
        }
        if (const Node* expect = node.find("expect")) {
            implied_checkpoint_ = checkpoint_of(step.action);
            build_expectations(*expect, step.label, now_, names_, step.expect, diagnostics_);
            fill_implied_checkpoint(step.expect);
        }
        if (!step.may_fail()) {
            add_default(Subject::runs, step.label, step.at, step.expect);
        }
        add_default(Subject::findings, step.label, step.at, step.expect);
        return step;
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
            names_.find(implied_checkpoint_)->used = true;
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

    Action build_action(const std::string& verb, const Node& table, bool fails) {
        if (verb == "train") {
            return train(table);
        }
        if (verb == "save") {
            return save(table);
        }
        if (verb == "load") {
            return load(table, fails);
        }
        if (verb == "restart") {
            return restart(table);
        }
        if (verb == "set") {
            return set(table);
        }
        if (verb == "add_param_group") {
            return add_group(table);
        }
        if (verb == "edit") {
            return edit(table);
        }
        if (verb == "damage") {
            return damage(table);
        }
        return InitStateStep{};
    }

    Action train(const Node& table) {
        TrainStep step;
        step.steps = count_or(table, "steps", 1);
        step.none = select_params(texts(table, "none"), now_, table.place_of("none"), diagnostics_);
        step.zero = select_params(texts(table, "zero"), now_, table.place_of("zero"), diagnostics_);
        step.gradients = text_or(table, "gradients", "");
        const Node* lr = table.find("lr");
        for (const Node& item : lr != nullptr ? lr->items : std::vector<Node>{}) {
            step.lr.push_back(item.is_number() ? item.number() : 0.0);
        }
        if (lr != nullptr && static_cast<std::int64_t>(step.lr.size()) != step.steps) {
            diagnostics_.error(
                "bad-value", lr->at,
                fmt::format("{} values of lr for {} steps", step.lr.size(), step.steps));
        }
        if (step.steps < 1 || step.steps > 100'000) {
            diagnostics_.error("bad-value", table.place_of("steps"),
                               "train takes 1 to 100000 steps");
        }
        names_.trained = true;
        return step;
    }

    Action save(const Node& table) {
        const Node& engine = table_or_empty(document_, "engine");
        SaveStep step;
        step.to = text_or(table, "to", "");
        step.via = via_from(engine_text(table, engine, "via", "dcp"));
        step.what = parts_from(table, engine);
        step.checks = checks_from(engine_text(table, engine, "checks", "full"));
        if (step.to.find('/') != std::string::npos || step.to.find("..") != std::string::npos) {
            diagnostics_.error("bad-value", table.place_of("to"), "a save has a plain name");
        }
        StoryNames::Saved saved;
        saved.at = table.place_of("to");
        saved.via = step.via;
        saved.world_size = now_.world_size;
        saved.history_known = names_.history_known;
        saved.lives = names_.lives;
        saved.what = step.what;
        take_name(step.to, saved);
        return step;
    }

    StoryNames::Saved* saved_as(const std::string& name, Position at) {
        StoryNames::Saved* saved = names_.find(name);
        if (saved == nullptr) {
            const std::string near = nearest(name, names_.saved_names());
            diagnostics_.error("no-such-name", at,
                               fmt::format("no save or checkpoint \"{}\" before this step{}", name,
                                           near.empty() ? "" : "; nearest: " + near),
                               "there are: " + join(names_.saved_names()));
        } else {
            saved->used = true;
        }
        return saved;
    }

    Action load(const Node& table, bool fails) {
        const Node& engine = table_or_empty(document_, "engine");
        LoadStep step;
        step.from = text_or(table, "from", "");
        step.what = parts_from(table, engine);
        step.load_states = flag_or(table, "load_states", flag_or(engine, "load_states", true));
        step.load_args = flag_or(table, "load_args", flag_or(engine, "load_args", true));
        step.checks = checks_from(engine_text(table, engine, "checks", "full"));
        if (engine_text(table, engine, "staging", "none") == "shadow") {
            step.staging = optim::LoadOptions::Staging::shadow;
        }
        if (engine_text(table, engine, "template", "full") == "live") {
            step.template_kind = optim::Snapshot::live;
        }
        StoryNames::Saved* saved = saved_as(step.from, table.place_of("from"));
        if (saved == nullptr) {
            return step;
        }
        step.from_checkpoint = saved->checkpoint;
        step.via = saved->via;
        if (!step.what.given) {
            step.what = saved->what;
            step.what.given = false;
        }
        check_loadable(*saved, table);
        if (!fails) {
            names_.history_known = saved->history_known && !saved->checkpoint;
            names_.trained = true;
        }
        return step;
    }

    void check_loadable(const StoryNames::Saved& saved, const Node& table) {
        const Position at = table.place_of("from");
        if (saved.via != Via::dcp && saved.world_size != now_.world_size) {
            diagnostics_.error("bad-value", at,
                               fmt::format("a state dict in memory of {} ranks cannot be loaded by "
                                           "{}: save via = \"dcp\"",
                                           saved.world_size, now_.world_size));
        }
        if (saved.via == Via::live && saved.lives != names_.lives) {
            diagnostics_.error("bad-value", at,
                               "a live state dict ends with its process: save via = \"memory\"");
        }
        if (saved.via != Via::dcp && table.find("template") != nullptr) {
            diagnostics_.error("bad-value", table.place_of("template"),
                               "a state dict in memory is loaded as it is, without a template");
        }
    }

    Action restart(const Node& table) {
        std::vector<NodePath> patches = leaves(table);
        for (const NodePath& patch : patches) {
            if (patch.keys.front() == "order") {
                order_ = texts(table, "order");
                continue;
            }
            const std::string& first = patch.keys.front();
            const bool allowed = first == "world" || first == "device" || first == "optimizer" ||
                                 first == "param" || first == "group";
            if (!allowed) {
                diagnostics_.error("unknown-key", patch.at,
                                   fmt::format("restart cannot patch {}", patch.text()),
                                   "restart patches world, device, optimizer, param, group, order");
                continue;
            }
            apply_patch(document_, patch, diagnostics_);
        }
        check_words_of_patch(table);
        now_ = build_set_up(document_, order_, diagnostics_);
        names_.history_known = true;
        names_.trained = false;
        ++names_.lives;
        return RestartStep{now_};
    }

    void check_words_of_patch(const Node& table);

    Action set(const Node& table) {
        SetStep step;
        step.patch = hyper_patch(table);
        const Node* group = table.find("group");
        const Node* param = table.find("param");
        if ((group == nullptr) == (param == nullptr)) {
            diagnostics_.error("missing-key", table.at, "set has one of group and param");
            return step;
        }
        if (group != nullptr) {
            step.group = static_cast<std::size_t>(group->integer);
        }
        for (std::size_t i = 0; param != nullptr && i < now_.groups.size(); ++i) {
            const auto& members = now_.groups[i].params;
            if (std::find(members.begin(), members.end(), param->text) != members.end()) {
                step.group = i;
                param = nullptr;
            }
        }
        if (param != nullptr || step.group >= now_.groups.size()) {
            diagnostics_.error("no-such-name", table.at,
                               fmt::format("no such group here: there are {}", now_.groups.size()));
            step.group = 0;
        }
        step.patch.apply(now_.groups[step.group].options);
        return step;
    }

    Action add_group(const Node& table) {
        AddGroupStep step;
        step.options = now_.options;
        hyper_patch(table).apply(step.options);
        GroupSpec group;
        group.options = step.options;
        group.added = true;
        for (const Node& item : table_items(table, "params")) {
            ParamSpec spec = param_spec(item, now_.mesh, diagnostics_);
            if (now_.find(spec.name) != nullptr) {
                diagnostics_.error("name-taken", item.at,
                                   fmt::format("there is a parameter \"{}\" already", spec.name));
                continue;
            }
            group.params.push_back(spec.name);
            now_.params.push_back(spec);
            step.params.push_back(std::move(spec));
        }
        if (group.params.empty()) {
            diagnostics_.error("unused", table.at, "a group without parameters");
        }
        now_.groups.push_back(std::move(group));
        return step;
    }

    static std::vector<Node> table_items(const Node& table, const char* key) {
        std::vector<Node> out;
        const Node* list = table.find(key);
        for (const Node& item : list != nullptr ? list->items : std::vector<Node>{}) {
            if (item.is(Kind::table)) {
                out.push_back(item);
            }
        }
        return out;
    }

    Action edit(const Node& table) {
        EditStep step;
        step.in = text_or(table, "in", "");
        const StoryNames::Saved* saved = saved_as(step.in, table.place_of("in"));
        step.via = saved != nullptr ? saved->via : Via::dcp;
        auto of = texts(table, "of");
        of = of.empty() ? std::vector<std::string>{"*"} : of;
        step.params = select_params(of, now_, table.place_of("of"), diagnostics_);
        step.keys = texts(table, "key");
        if (step.keys.empty()) {
            step.keys = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
        }
        if (const Node* group = table.find("group")) {
            step.group = static_cast<std::size_t>(group->integer);
        }
        step.drop = flag_or(table, "drop", false);
        step.unshard = flag_or(table, "unshard", false);
        if (const Node* value = table.find("set")) {
            step.set = *value;
        }
        if (const Node* shape = table.find("shape")) {
            step.shape = tensor_shape_of(*shape, diagnostics_);
        }
        const int changes = (step.drop ? 1 : 0) + (step.unshard ? 1 : 0) + (step.set ? 1 : 0) +
                            (step.shape ? 1 : 0);
        if (changes != 1) {
            diagnostics_.error("missing-key", table.at,
                               "edit has exactly one of drop, set, shape, unshard");
        }
        if (step.unshard && step.via == Via::dcp) {
            diagnostics_.error("bad-value", table.place_of("unshard"),
                               "a directory holds global tensors: unshard a save in memory");
        }
        if (step.via == Via::live) {
            diagnostics_.error("bad-value", table.place_of("in"),
                               "an edit of a live state dict would change the optimizer: "
                               "save via = \"memory\"");
        }
        return step;
    }

    Action damage(const Node& table) {
        DamageStep step;
        step.in = text_or(table, "in", "");
        const StoryNames::Saved* saved = saved_as(step.in, table.place_of("in"));
        if (saved != nullptr && saved->via != Via::dcp) {
            diagnostics_.error("bad-value", table.place_of("in"),
                               "a state dict in memory has no files to damage: use edit");
        }
        step.file = text_or(table, "file", "");
        step.key = text_or(table, "key", "");
        if (const Node* of = table.find("of")) {
            const auto names = select_params(texts(table, "of"), now_, of->at, diagnostics_);
            step.param = names.empty() ? "" : names.front();
        }
        if (step.file.empty() == step.param.empty()) {
            diagnostics_.error("missing-key", table.at, "damage has one of file and of");
        } else if (!step.file.empty() && leaves_its_directory(step.file)) {
            diagnostics_.error("bad-value", table.place_of("file"),
                               "the name of a file in the directory is expected, \".metadata\"");
        }
        step.remove = flag_or(table, "delete", false);
        if (const Node* truncate = table.find("truncate")) {
            Diagnostics reported_already;
            const auto amount =
                read_amount(*truncate, AmountOf::bytes, "truncate", reported_already);
            step.truncate_bytes =
                static_cast<std::uint64_t>(amount ? amount->value({}).value_or(0) : 0);
        }
        if (step.remove == step.truncate_bytes.has_value()) {
            diagnostics_.error("missing-key", table.at, "damage has one of truncate and delete");
        }
        return step;
    }

    void report_unused() {
        for (const auto& [name, saved] : names_.saves) {
            if (!saved.used) {
                diagnostics_.error("unused", saved.at,
                                   fmt::format("\"{}\" is neither loaded nor looked at", name),
                                   "load it, compare with it, or look at its cover or files");
            }
        }
    }

    Node document_;
    Diagnostics& diagnostics_;
    SetUp now_;
    StoryNames names_;
    std::vector<std::string> order_;
    std::string implied_checkpoint_;
};

void StoryBuilder::check_words_of_patch(const Node& table) {
    // The tables of a patch have the words of the tables that they patch; a list that replaces
    // [[group]] is a whole one.
    for (const char* key : {"world", "device", "optimizer"}) {
        const Node* part = table.find(key);
        if (part != nullptr && part->is(Kind::table)) {
            check_section(*part, section(key), diagnostics_);
        }
    }
    for (const char* key : {"param", "group"}) {
        const Node* part = table.find(key);
        if (part == nullptr) {
            continue;
        }
        for (const NodeEntry& entry : part->entries) {
            if (entry.value.is(Kind::table)) {
                check_section(entry.value, section(key), diagnostics_);
            }
        }
        for (const Node& item : part->items) {
            if (item.is(Kind::table)) {
                check_section(item, section(key), diagnostics_);
            }
        }
    }
}

}  // namespace

Run build_run(const Node& document, const Node& which, Diagnostics& diagnostics) {
    Run run;
    run.which = build_case(which, diagnostics);
    StoryBuilder(document, diagnostics).build(run);
    resolve_fails(run, diagnostics);
    return run;
}

}  // namespace swaplab::harness::scenario
