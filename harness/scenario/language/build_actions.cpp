// What steps do, from their tables; each moves the story on to the end of its step.

#include "scenario/language/build.hpp"
#include "scenario/language/patch.hpp"
#include "scenario/language/rounds.hpp"
#include "scenario/language/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

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

void check_words_of_patch(const Node& table, Diagnostics& diagnostics) {
    // The tables of a patch have the words of the tables that they patch; a list that replaces
    // [[group]] is a whole one.
    for (const char* key : {"world", "device", "host", "optimizer"}) {
        const Node* part = table.find(key);
        if (part != nullptr && part->is(Kind::table)) {
            check_section(*part, section(key), diagnostics);
        }
    }
    for (const char* key : {"param", "group"}) {
        const Node* part = table.find(key);
        if (part == nullptr) {
            continue;
        }
        for (const NodeEntry& entry : part->entries) {
            if (entry.value.is(Kind::table)) {
                check_section(entry.value, section(key), diagnostics);
            }
        }
        for (const Node& item : part->items) {
            if (item.is(Kind::table)) {
                check_section(item, section(key), diagnostics);
            }
        }
    }
}

class ActionBuilder {
  public:
    ActionBuilder(StoryState& story, Diagnostics& diagnostics)
        : document_(story.document),
          now_(story.now),
          names_(story.names),
          order_(story.order),
          diagnostics_(diagnostics) {}

    Action build(const std::string& verb, const Node& table, bool fails) {
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
        if (verb == "hold") {
            return hold(table);
        }
        if (verb == "release") {
            return release(table);
        }
        if (verb == "repeat") {
            return repeat(table);
        }
        return InitStateStep{};
    }

  private:
    Action train(const Node& table) {
        TrainStep step;
        step.steps = count_or(table, "steps", 1);
        step.none = select_params(texts(table, "none"), now_, table.place_of("none"), diagnostics_);
        step.zero = select_params(texts(table, "zero"), now_, table.place_of("zero"), diagnostics_);
        step.gradients = text_or(table, "gradients", "");
        const Node* lr = table.find("lr");
        for (const Node& item : lr != nullptr ? lr->items : std::vector<Node>{}) {
            step.lr.push_back(item.is_number() ? item.number() : 0.0);
            check_lr(item, diagnostics_);
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
        StoryNames::Saved saved;
        saved.at = table.place_of("to");
        saved.via = step.via;
        saved.world_size = now_.world_size;
        saved.history_known = names_.history_known;
        saved.lives = names_.lives;
        saved.what = step.what;
        take_name(step.to, saved, names_, diagnostics_);
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
        bool lose_unsynced = false;
        std::vector<NodePath> patches = leaves(table);
        for (const NodePath& patch : patches) {
            if (patch.keys.front() == "order") {
                order_ = {texts(table, "order"), patch.at};
                continue;
            }
            const std::string& first = patch.keys.front();
            if (first == "lose_unsynced") {
                lose_unsynced = is_flag(*table.find(first));
                continue;
            }
            const bool allowed = first == "world" || first == "device" || first == "host" ||
                                 first == "optimizer" || first == "param" || first == "group";
            if (!allowed) {
                diagnostics_.error(
                    "unknown-key", patch.at, fmt::format("restart cannot patch {}", patch.text()),
                    "restart patches world, device, host, optimizer, param, group, order; "
                    "lose_unsynced");
                continue;
            }
            apply_patch(document_, patch, diagnostics_);
        }
        check_words_of_patch(table, diagnostics_);
        now_ = build_set_up(document_, order_, diagnostics_);
        names_.history_known = true;
        names_.trained = false;
        ++names_.lives;
        names_.held.clear();
        return RestartStep{now_, lose_unsynced};
    }

    bool is_flag(const Node& node) {
        if (!node.is(Kind::boolean)) {
            diagnostics_.error(
                "wrong-type", node.at,
                fmt::format("lose_unsynced = {}: true or false is expected", show(node)));
        }
        return node.boolean;
    }

    Action set(const Node& table) {
        SetStep step;
        step.patch = hyper_patch(table, diagnostics_);
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
        hyper_patch(table, diagnostics_).apply(step.options);
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
        step.zero = flag_or(table, "zero", false);
        step.truncate_bytes = plain_bytes(table, "truncate");
        step.extend_bytes = plain_bytes(table, "extend");
        if (const Node* flip = table.find("flip")) {
            step.flip_offset = static_cast<std::uint64_t>(flip->integer);
        }
        step.copy_from = text_or(table, "copy_from", "");
        if (!step.copy_from.empty()) {
            const StoryNames::Saved* other = saved_as(step.copy_from, table.place_of("copy_from"));
            if (other != nullptr && (other->via != Via::dcp || step.copy_from == step.in)) {
                diagnostics_.error("bad-value", table.place_of("copy_from"),
                                   "another save or checkpoint in a directory is expected");
            }
        }
        check_damage(step, table);
        return step;
    }

    std::optional<std::uint64_t> plain_bytes(const Node& table, const char* key) {
        const Node* node = table.find(key);
        if (node == nullptr) {
            return std::nullopt;
        }
        Diagnostics reported_already;
        const auto amount = read_amount(*node, AmountOf::bytes, key, reported_already);
        const std::int64_t bytes = amount ? amount->value({}).value_or(-1) : 0;
        constexpr std::int64_t most_bytes = std::int64_t{1} << 30U;
        if (bytes < 0 || bytes > most_bytes || (amount && amount->derived())) {
            diagnostics_.error("bad-amount", node->at,
                               fmt::format("{} takes plain bytes, at most 1 GiB", key));
        }
        return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
    }

    void check_damage(const DamageStep& step, const Node& table) {
        const int changes = (step.truncate_bytes ? 1 : 0) + (step.remove ? 1 : 0) +
                            (step.flip_offset ? 1 : 0) + (step.zero ? 1 : 0) +
                            (step.extend_bytes ? 1 : 0) + (step.copy_from.empty() ? 0 : 1);
        if (changes != 1) {
            diagnostics_.error(
                "missing-key", table.at,
                "damage has exactly one of truncate, delete, flip, zero, extend, copy_from");
        }
        if (step.file.empty() && (step.extend_bytes || !step.copy_from.empty())) {
            diagnostics_.error("bad-value", table.at,
                               "extend and copy_from are of a whole file: give its name, file");
        }
        if (step.extend_bytes == std::uint64_t{0}) {
            diagnostics_.error("bad-amount", table.place_of("extend"),
                               "extend takes a number of bytes above 0");
        }
    }

    Action hold(const Node& table) {
        HoldStep step;
        step.name = text_or(table, "name", "");
        const std::string memory = text_or(table, "memory", "device");
        step.memory = memory == "pinned" ? sim::MemoryKind::pinned
                      : memory == "host" ? sim::MemoryKind::host
                                         : sim::MemoryKind::device;
        Diagnostics reported_already;
        const Node* bytes = table.find("bytes");
        if (bytes != nullptr) {
            step.bytes = read_amount(*bytes, AmountOf::bytes, "bytes", reported_already)
                             .value_or(step.bytes);
        }
        if (!step.bytes.derived() && step.bytes.value({}).value_or(0) <= 0) {
            diagnostics_.error("bad-amount", table.place_of("bytes"),
                               "hold takes a number of bytes above 0");
        }
        step.outside_pool = flag_or(table, "outside_pool", false);
        if (step.outside_pool && step.memory != sim::MemoryKind::device) {
            diagnostics_.error("bad-value", table.place_of("outside_pool"),
                               "outside_pool is of device memory: pinned and host memory is not "
                               "taken from its pool");
        }
        const auto same = std::find(names_.held.begin(), names_.held.end(), step.name);
        if (same != names_.held.end()) {
            diagnostics_.error("name-taken", table.place_of("name"),
                               fmt::format("\"{}\" is held already", step.name));
        }
        names_.held.push_back(step.name);
        return step;
    }

    Action release(const Node& table) {
        const ReleaseStep step{text_or(table, "name", "")};
        const auto found = std::find(names_.held.begin(), names_.held.end(), step.name);
        if (found == names_.held.end()) {
            diagnostics_.error("no-such-name", table.place_of("name"),
                               fmt::format("nothing is held as \"{}\" here", step.name),
                               "what is held ends with its process");
        } else {
            names_.held.erase(found);
        }
        return step;
    }

    Action repeat(const Node& table) {
        RepeatStep step;
        step.rounds = static_cast<std::size_t>(count_or(table, "rounds", 0));
        const Node* body = table.find("do");
        step.steps = body != nullptr ? body->items.size() : 0;
        if (step.rounds < 2 || step.steps == 0) {
            diagnostics_.error("bad-value", table.at, "repeat takes 2 rounds or more of some steps",
                               "{ repeat = 3, do = [{ train = 1 }] }");
        } else if (step.rounds > max_steps || step.rounds * step.steps > max_steps) {
            diagnostics_.error("too-large", table.at,
                               fmt::format("a story has at most {} steps", max_steps));
        }
        return step;
    }

    Node& document_;
    SetUp& now_;
    StoryNames& names_;
    Order& order_;
    Diagnostics& diagnostics_;
};

}  // namespace

namespace {

/// A name that can be one directory on any file system.

}  // namespace

bool is_plain(const std::string& name) {
    constexpr std::size_t most = 64;
    return !name.empty() && name.size() <= most && name.front() != '.' &&
           name.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
               "._-") == std::string::npos;
}

bool is_reference(const std::string& name) {
    return name == "before" || name == "start" || name == "end" || name == "uninterrupted" ||
           name == "adamw";
}

void take_name(const std::string& name, const StoryNames::Saved& saved, StoryNames& names,
               Diagnostics& diagnostics) {
    if (!is_plain(name)) {
        diagnostics.error("bad-value", saved.at,
                          "saves and checkpoints have plain names: letters, digits, . _ - and at "
                          "most 64 of them");
    }
    const auto& labels = names.labels;
    if (is_reference(name) || std::find(labels.begin(), labels.end(), name) != labels.end()) {
        diagnostics.error("name-taken", saved.at,
                          fmt::format("\"{}\" already names a step or a reference", name),
                          "labels, saves and checkpoints share one list of names");
    }
    if (StoryNames::Saved* old = names.find(name)) {
        if (old->checkpoint) {
            diagnostics.error("name-taken", saved.at,
                              fmt::format("\"{}\" is a given checkpoint", name));
        }
        const bool used = old->used;
        *old = saved;
        old->used = used;
        return;
    }
    names.saves.emplace_back(name, saved);
}

Action build_action(const std::string& verb, const Node& table, bool fails, StoryState& story,
                    Diagnostics& diagnostics) {
    return ActionBuilder(story, diagnostics).build(verb, table, fails);
}

}  // namespace swaplab::harness::scenario
