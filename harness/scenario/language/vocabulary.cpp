#include "scenario/language/vocabulary.hpp"

#include "swaplab/sim/assert.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness::scenario {
namespace {

constexpr const char* kinds = "case|swap_adamw|adamw";
constexpr const char* checks = "full|torch|none";
constexpr const char* keys_of_state =
    "exp_avg|exp_avg_sq|max_exp_avg_sq|step|lr|betas|eps|weight_decay|amsgrad|maximize";
constexpr const char* error_kinds =
    "rejected|corrupt|torn|out_of_memory|storage|rank_lost|collective_mismatch|deadline|device|"
    "argument";
constexpr const char* finding_kinds =
    "race|leak|pending_work|unwaited_event|host_touch|host_pointer|use_after_free|"
    "in_flight_reuse|uninitialised|undeclared_access|reentrant_call|"
    "bad_argument";
constexpr const char* points =
    "device_alloc|pinned_alloc|copy|launch|open|read|write|fsync|rename|mkdir|remove|stage|plan|"
    "validate|apply|publish|collective";
constexpr const char* actions =
    "fail|throw|flip|slow|late|eio|enospc|short|lost|kill|stop|delay|2:pause";

std::vector<Word> hyper_parameters() {
    return {{"lr", Type::number, 1, "", "1e-3", "learning rate"},
            {"betas", Type::betas, 1, "", "[0.9, 0.999]", "decay of the two moments"},
            {"eps", Type::number, 1, "", "1e-8", "added to the denominator"},
            {"weight_decay", Type::number, 1, "", "0.01", "decoupled weight decay"},
            {"amsgrad", Type::flag, 1, "", "false", "keep the largest second moment"},
            {"maximize", Type::flag, 1, "", "false", "go up the gradient"}};
}

std::vector<Word> with(std::vector<Word> words, const std::vector<Word>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

std::vector<Section> set_up_sections() {
    return {
        {"file",
         {{"scenario", Type::table, 1, "scenario", "", "what is told, and why"},
          {"world", Type::table, 1, "world", "", "ranks"},
          {"device", Type::table, 1, "device", "", "one accelerator per rank"},
          {"host", Type::table, 1, "host", "", "limits of host memory"},
          {"storage", Type::table, 1, "storage", "", "where checkpoints lie"},
          {"engine", Type::table, 1, "engine", "", "defaults of save and load"},
          {"param", Type::tables, 1, "param", "", "the model"},
          {"optimizer", Type::table, 1, "optimizer", "", "the optimizer of the story"},
          {"group", Type::tables, 1, "group", "", "parameter groups; default: one with everything"},
          {"checkpoint", Type::tables, 1, "checkpoint", "", "given directories"},
          {"twin", Type::tables, 2, "", "", "another story to compare with"},
          {"scheduler", Type::table, 3, "", "", "values written before each training step"},
          {"step", Type::free, 1, "", "", "what is done, in order"},
          {"expect", Type::free, 1, "", "", "what must hold at the end"},
          {"case", Type::free, 1, "", "", "which optimizer passes, which fails where"},
          {"matrix", Type::free, 1, "", "", "PATH = list of values; every combination runs"}}},
        {"scenario",
         {{"name", Type::text, 1, "", "", "one line (required)"},
          {"issue", Type::text, 1, "", "", "owner/repo#N or text"},
          {"why", Type::text, 1, "", "", "what goes wrong without it (required)"},
          {"seen", Type::text, 1, "", "", "what the report saw"},
          {"tags", Type::texts, 1, "", "[]", "for lists"},
          {"seed", Type::count, 1, "", "1", "of parameters, gradients and schedules"},
          {"timeout", Type::duration, 1, "", "\"10 s\"", "a step that takes longer is a hang"}}},
        {"world",
         {{"size", Type::count, 1, "", "1", "ranks"},
          {"mesh", Type::shape, 1, "", "[size]", "row-major; implies size"},
          {"kind", Type::word, 1, "fiber|thread|process", "\"fiber\"", "what a rank is"}}},
        {"device",
         {{"capacity", Type::bytes, 1, "", "\"1 GiB\"", "of each device"},
          {"schedule", Type::word, 1, "fifo|random|latest|pct|exhaustive", "\"fifo\"",
           "which of the operations that may run next does; exhaustive: every order in turn"},
          {"allocator", Type::word, 1, "raw|caching|stream_ordered", "\"raw\"",
           "who hands out device memory: nobody, PyTorch's, cudaMallocAsync's"},
          {"count", Type::count, 2, "", "", ""},
          {"profile", Type::word, 1, "a100_pcie4|gh200_c2c|h200_pcie5|unit", "\"unit\"",
           "how fast it is in the charts of --trace: profiles/*.json"},
          {"host_access", Type::word, 2, "", "", ""},
          {"backend", Type::word, 3, "", "", ""},
          {"sparse", Type::flag, 3, "", "", ""}}},
        {"host",
         {{"capacity", Type::bytes, 1, "", "unlimited", "pageable memory of each rank"},
          {"pinned", Type::bytes, 1, "", "unlimited", "quota of each rank"},
          {"pinned_policy", Type::word, 1, "exact|power_of_two", "\"exact\"",
           "pages of 4 KiB, or PyTorch's: powers of two, kept when freed"}}},
        {"storage",
         {{"kind", Type::word, 1, "memory|posix", "\"memory\"", "a file system in memory or real"},
          {"capacity", Type::bytes, 1, "", "unlimited", "of all files: then the disk is full"}}},
        {"engine",
         {{"chunk", Type::bytes, 1, "", "\"1 MiB\"", "one read or staging block"},
          {"checks", Type::word, 1, checks, "\"full\"", "what a load checks before it reads"},
          {"via", Type::word, 1, "dcp|memory|live", "\"dcp\"", "how a save keeps its dict"},
          {"staging", Type::word, 1, "none|shadow", "\"none\"", "how a load applies"},
          {"template", Type::word, 1, "full|live|2:empty", "\"full\"", "what a load reads into"},
          {"what", Type::words, 1, "model|optimizer", "both", "of saves and loads"},
          {"load_states", Type::flag, 1, "", "true", "of loads"},
          {"load_args", Type::flag, 1, "", "true", "of loads"}}}};
}

std::vector<Section> model_sections() {
    return {
        {"param",
         {{"name", Type::text, 1, "", "", "(required)"},
          {"shape", Type::shape, 1, "", "", "global (required)"},
          {"dtype", Type::word, 1, "fp32|3:bf16|3:fp16|3:fp64", "\"fp32\"", ""},
          {"placements", Type::placements, 1, "", "all Replicate()", "one per mesh axis"},
          {"init", Type::init, 1, "2:per_rank", "\"seeded\"", "seeded, or one number"},
          {"frozen", Type::flag, 2, "", "", ""},
          {"ranks", Type::counts, 2, "", "", ""},
          {"mesh", Type::shape, 2, "", "", ""},
          {"strides", Type::shape, 3, "", "", ""},
          {"tied_to", Type::text, 3, "", "", ""}}},
        {"optimizer",
         with({{"kind", Type::word, 1, kinds, "\"case\"", "each case's own, or this one"}},
              with(hyper_parameters(),
                   {{"bucket", Type::elements, 1, "", "\"1024 elements\"", "of SwapAdamW"},
                    {"slots", Type::count, 1, "", "3", "device slots in the ring"},
                    {"keep_slots", Type::flag, 1, "", "false", "between steps"},
                    {"moment_dtype", Type::word, 3, "", "", ""},
                    {"masters", Type::flag, 3, "", "", ""},
                    {"layout", Type::word, 3, "", "", ""},
                    {"pad", Type::elements, 3, "", "", ""},
                    {"options", Type::free, 3, "", "", ""}}))},
        {"group", with({{"params", Type::texts, 1, "", "", "names or globs (required)"}},
                       with(hyper_parameters(), {{"extra", Type::free, 2, "", "", ""}}))},
        {"checkpoint",
         {{"name", Type::text, 1, "", "", "(required)"},
          {"path", Type::text, 1, "", "", "relative to this file (required)"}}},
    };
}

std::vector<Section> step_sections() {
    return {
        {"step",
         {{"train", Type::table, 1, "step.train", "", "N training steps"},
          {"save", Type::table, 1, "step.save", "", "NAME"},
          {"load", Type::table, 1, "step.load", "", "NAME"},
          {"restart", Type::patch, 1, "", "",
           "new processes; patches of the set-up; order; lose_unsynced"},
          {"set", Type::table, 1, "step.set", "", "hyper-parameters of a running group"},
          {"add_param_group", Type::table, 1, "step.add_param_group", "", "in the running process"},
          {"init_state", Type::table, 1, "step.init_state", "", "the optimizer makes its state"},
          {"edit", Type::table, 1, "step.edit", "", "a well-formed change of something saved"},
          {"damage", Type::table, 1, "step.damage", "", "a change that breaks files"},
          {"wait", Type::text, 2, "", "", ""},
          {"hold", Type::table, 1, "step.hold", "", "somebody else's memory, e.g. activations"},
          {"release", Type::table, 1, "step.release", "", "NAME: gives back what was held"},
          {"repeat", Type::table, 1, "step.repeat", "", "N rounds of the steps in `do`"},
          {"do", Type::free, 1, "", "", "of repeat: the steps of a round"},
          {"move", Type::free, 3, "", "", ""},
          {"label", Type::text, 1, "", "the verb, then verb-2", "name of the step"},
          {"expect", Type::free, 1, "", "", "what must hold when the step ends"},
          {"fault", Type::table, 1, "fault", "", "what breaks during it"},
          {"may_refuse", Type::free, 2, "", "", ""},
          {"instance", Type::text, 3, "", "", ""}}},
        {"step.train",
         {{"steps", Type::count, 1, "", "1", "how many"},
          {"none", Type::texts, 1, "", "[]", "parameters without gradient"},
          {"zero", Type::texts, 1, "", "[]", "parameters whose gradient is zero"},
          {"nan", Type::texts, 2, "", "", ""},
          {"inf", Type::texts, 2, "", "", ""},
          {"lr", Type::numbers, 1, "", "", "one per step, written to every group before it"},
          {"gradients", Type::text, 1, "", "", "JSON file with gradients[step][name] as hex bits"},
          {"keep_gradients", Type::flag, 2, "", "", ""},
          {"found_inf", Type::free, 3, "", "", ""},
          {"grad_scale", Type::number, 3, "", "", ""},
          {"clip", Type::number, 3, "", "", ""}}}};
}

std::vector<Section> save_and_load_sections() {
    return {{"step.save",
             {{"to", Type::text, 1, "", "", "name of what is saved (required)"},
              {"via", Type::word, 1, "dcp|memory|live", "\"dcp\"",
               "a directory, an owned state dict, or one that is not copied"},
              {"what", Type::words, 1, "model|optimizer", "both", ""},
              {"checks", Type::word, 1, checks, "engine.checks", ""},
              {"async", Type::flag, 2, "", "", ""},
              {"writer", Type::word, 2, "", "", ""},
              {"threads", Type::count, 2, "", "", ""},
              {"file_per_item", Type::flag, 2, "", "", ""},
              {"flatten", Type::flag, 2, "", "", ""},
              {"dedup", Type::word, 2, "", "", ""},
              {"full_state_dict", Type::flag, 2, "", "", ""},
              {"cpu_offload", Type::flag, 2, "", "", ""},
              {"reuse_plan", Type::flag, 2, "", "", ""},
              {"format", Type::word, 2, "", "", ""}}},
            {"step.load",
             {{"from", Type::text, 1, "", "", "a save or a checkpoint (required)"},
              {"what", Type::words, 1, "model|optimizer", "what was saved", "read in this order"},
              {"load_states", Type::flag, 1, "", "true", "moments and steps"},
              {"load_args", Type::flag, 1, "", "true", "hyper-parameters"},
              {"checks", Type::word, 1, checks, "engine.checks", ""},
              {"staging", Type::word, 1, "none|shadow", "engine.staging", ""},
              {"template", Type::word, 1, "full|live|2:empty", "engine.template",
               "dict that optimizers without a load of their own read into"},
              {"if_none", Type::word, 2, "", "", ""},
              {"flatten", Type::flag, 2, "", "", ""},
              {"full_state_dict", Type::flag, 2, "", "", ""},
              {"broadcast_from_rank0", Type::flag, 2, "", "", ""},
              {"keep_input", Type::flag, 2, "", "", ""},
              {"convert", Type::flag, 3, "", "", ""},
              {"hyper_parameters", Type::word, 3, "", "", ""}}}};
}

std::vector<Section> change_sections() {
    return {
        {"step.set", with({{"group", Type::count, 1, "", "", "number of the group"},
                           {"param", Type::text, 1, "", "", "or: the group that holds it"},
                           {"through", Type::text, 2, "", "", ""}},
                          hyper_parameters())},
        {"step.add_param_group",
         with({{"params", Type::tables, 1, "param", "", "list of [[param]] tables (required)"}},
              hyper_parameters())},
        {"step.init_state", {}},
        {"step.edit",
         {{"in", Type::text, 1, "", "", "a save or checkpoint (required)"},
          {"of", Type::texts, 1, "", "all", "parameters"},
          {"key", Type::words, 1, keys_of_state, "moments", "keys of state or group"},
          {"group", Type::count, 1, "", "", ""},
          {"drop", Type::flag, 1, "", "", "remove the key"},
          {"set", Type::value, 1, "", "", "every element, or the value of a group's key"},
          {"shape", Type::shape, 1, "", "", "new global shape; rows are cut or zero"},
          {"unshard", Type::flag, 1, "", "", "drop the shard metadata (state dicts)"},
          {"dtype", Type::word, 3, "", "", ""}}},
        {"step.damage",
         {{"in", Type::text, 1, "", "", "a dcp save or checkpoint (required)"},
          {"file", Type::text, 1, "", "", "name of a file in it"},
          {"of", Type::text, 1, "", "", "or: parameter whose first item is meant"},
          {"key", Type::word, 1, "exp_avg|exp_avg_sq|max_exp_avg_sq|step", "the parameter", ""},
          {"truncate", Type::bytes, 1, "", "", "what stays of the file, or of the item"},
          {"delete", Type::flag, 1, "", "", "the file"},
          {"flip", Type::count, 1, "", "", "offset of the byte a bit of which turns over"},
          {"zero", Type::flag, 1, "", "", "every byte of the file, or of the payload"},
          {"extend", Type::bytes, 1, "", "", "zeroes after the end of the file"},
          {"copy_from", Type::text, 1, "", "", "a save or checkpoint: its file of that name"}}},
        {"step.hold",
         {{"name", Type::text, 1, "", "", "for release, and tag in the ledger (required)"},
          {"bytes", Type::bytes, 1, "", "", "on each rank (required)"},
          {"memory", Type::word, 1, "device|pinned|host", "\"device\"", ""},
          {"outside_pool", Type::flag, 1, "", "false",
           "of device memory: taken from the device itself, as libraries do"}}},
        {"step.repeat",
         {{"rounds", Type::count, 1, "", "", "how many, from 2 on (required)"},
          {"do", Type::free, 1, "", "", "steps of a round (required)"}}},
        {"step.release", {{"name", Type::text, 1, "", "", "of a hold (required)"}}},
        {"fault",
         {{"at", Type::word, 1, points, "", "the point (required)"},
          {"nth", Type::ordinal, 1, "each", "1",
           "the nth time the rank passes it; each: the story once per pass"},
          {"rank", Type::count, 1, "", "0", ""},
          {"then", Type::word, 1, actions, "\"fail\"",
           "fail: the seam's own error; flip: one bit of what a copy brings; slow: a copy takes 4 "
           "times; late: as it runs"},
          {"over", Type::bytes, 1, "", "", "only passes of more bytes"},
          {"file", Type::text, 1, "", "", "only passes of files with this name, or glob"},
          {"once", Type::flag, 1, "", "true", "false: every later pass fails, too"},
          {"by", Type::duration, 1, "", "", "how long a delay is (required for delay)"}}},
    };
}

std::vector<Word> selectors() {
    return {{"of", Type::texts, 1, "", "all", "parameter names or globs"},
            {"key", Type::words, 1, keys_of_state, "all", "keys of state or group"},
            {"group", Type::count, 1, "", "all", "number of the group"},
            {"in", Type::text, 1, "", "live", "a save or checkpoint"},
            {"view", Type::word, 1, "step|state_dict", "both",
             "what the next step reads; what state_dict() returns"},
            {"name", Type::text, 1, "", "", "part of the path"}};
}

std::vector<Word> state_words() {
    return with(selectors(), {{"same_as", Type::reference, 1, "", "", "bit for bit"},
                              {"differs_from", Type::reference, 1, "", "", "each selected tensor"},
                              {"elements", Type::word, 1, "any|all", "\"any\"", "of differs_from"},
                              {"is", Type::value, 1, "", "", "value, or { NAME = value }"},
                              {"finite", Type::flag, 2, "", "", ""},
                              {"rounded", Type::flag, 3, "", "", ""}});
}

std::vector<Word> memory_words() {
    return {
        {"peak", Type::figure, 1, "", "", "highest during the step"},
        {"rise", Type::figure, 1, "", "", "peak - before"},
        {"kept", Type::figure, 1, "", "", "after - before"},
        {"now", Type::figure, 1, "", "", "after"},
        {"slope", Type::figure, 1, "", "", "of repeat: largest growth in a round after the 1st"}};
}

std::vector<Word> traffic_selectors() {
    return {{"rank", Type::ranks, 1, "sum", "every rank", "list, or \"sum\""},
            {"since", Type::text, 1, "", "this step", "label: figures from its end on"},
            {"name", Type::text, 1, "", "", "part of the path"}};
}

std::vector<Word> figure_selectors() {
    return with({{"tag", Type::texts, 1, "", "all", "tags or globs"}}, traffic_selectors());
}

std::vector<Word> error_words() {
    return {{"naming", Type::texts, 1, "", "", "values that the error carries as fields"},
            {"kind", Type::word, 1, error_kinds, "", ""},
            {"name", Type::text, 1, "", "", "part of the path"}};
}

std::vector<Word> reserved_words() {
    return {
        {"now", Type::figure, 1, "", "", "after"},
        {"kept", Type::figure, 1, "", "", "after - before"},
        {"slope", Type::figure, 1, "", "", "of repeat: largest growth in a round after the 1st"},
        {"peak", Type::figure, 1, "", "", "highest during the step"},
        {"rise", Type::figure, 1, "", "", "peak - before"}};
}

Section memory_section(const char* name) {
    return {name, with(with(memory_words(), figure_selectors()),
                       {{"rounded", Type::table, 1, "expect.memory", "", "in regions of 256 B"},
                        {"occupied", Type::table, 1, "expect.memory", "",
                         "until what was queued before the free has run"},
                        {"worst", Type::table, 1, "expect.memory", "",
                         "the most that any schedule occupies"}})};
}

Section with_reserved(Section section) {
    section.words.push_back({"reserved", Type::table, 1, "expect.reserved", "",
                             "by the allocator, handed out or kept"});
    return section;
}

std::vector<Word> sized_words() {
    return {{"bytes", Type::figure, 1, "", "", ""},
            {"count", Type::figure, 1, "", "", ""},
            {"up_to", Type::bytes, 1, "", "", "only those of at most this size"},
            {"above", Type::bytes, 1, "", "", "only larger ones"}};
}

Section copy_section(const char* name) {
    return {name, with(sized_words(), figure_selectors())};
}

Section file_traffic_section(const char* name) {
    return {name, with(sized_words(), traffic_selectors())};
}

std::vector<Section> expectation_sections() {
    return {{"expect",
             {{"params", Type::table, 1, "expect.params", "", "assembled to global tensors"},
              {"moments", Type::table, 1, "expect.moments", "", ""},
              {"steps", Type::table, 1, "expect.steps", "", "Adam's counters"},
              {"groups", Type::table, 1, "expect.groups", "", "hyper-parameters"},
              {"state", Type::table, 1, "expect.state", "", "moments, steps and groups"},
              {"everything", Type::table, 1, "expect.everything", "", "params and state"},
              {"device", Type::table, 1, "expect.device", "", "charged, requested bytes"},
              {"pinned", Type::table, 1, "expect.pinned", "", ""},
              {"host", Type::table, 1, "expect.host", "", ""},
              {"h2d", Type::table, 1, "expect.h2d", "", "copies to the device"},
              {"d2h", Type::table, 1, "expect.d2h", "", "copies from it"},
              {"d2d", Type::table, 1, "expect.d2d", "", "copies on it"},
              {"read", Type::table, 1, "expect.read", "", "from files"},
              {"written", Type::table, 1, "expect.written", "", "to files"},
              {"syncs", Type::table, 1, "expect.syncs", "", "waits of the host for the device"},
              {"cover", Type::table, 1, "expect.cover", "", "of a checkpoint"},
              {"files", Type::table, 1, "expect.files", "", "of a checkpoint"},
              {"buffers", Type::table, 1, "expect.buffers", "", "of moments"},
              {"refused", Type::table, 1, "expect.refused", "", "on every rank, nothing changed"},
              {"error", Type::table, 1, "expect.error", "", "any other failure"},
              {"findings", Type::table, 1, "expect.findings", "", "of the device"},
              {"trace", Type::table, 1, "expect.trace", "", "operations of the step"},
              {"warned", Type::table, 2, "", "", ""},
              {"masters", Type::table, 3, "", "", ""},
              {"time", Type::table, 3, "", "", ""},
              {"name", Type::text, 1, "", "", "part of the path"}}}};
}

std::vector<Section> subject_sections() {
    const std::vector<Word> in_and_name{{"in", Type::text, 1, "", "this step's", ""},
                                        {"name", Type::text, 1, "", "", "part of the path"}};
    return {
        {"expect.params", state_words()},
        {"expect.moments", state_words()},
        {"expect.steps", state_words()},
        {"expect.groups", state_words()},
        {"expect.state", state_words()},
        {"expect.everything", state_words()},
        with_reserved(memory_section("expect.device")),
        with_reserved(memory_section("expect.pinned")),
        memory_section("expect.host"),
        {"expect.memory", memory_words()},
        {"expect.reserved", reserved_words()},
        copy_section("expect.h2d"),
        copy_section("expect.d2h"),
        copy_section("expect.d2d"),
        file_traffic_section("expect.read"),
        file_traffic_section("expect.written"),
        {"expect.syncs", with({{"count", Type::figure, 1, "", "", ""}}, traffic_selectors())},
        {"expect.cover", with({{"missing", Type::figure, 1, "", "", "elements stored never"},
                               {"repeated", Type::figure, 1, "", "", "elements stored twice"},
                               {"of", Type::texts, 1, "", "all", "parameter names or globs"},
                               {"key", Type::words, 1, keys_of_state, "all", "keys of state"}},
                              in_and_name)},
        {"expect.files", with({{"bytes", Type::figure, 1, "", "", ""},
                               {"count", Type::figure, 1, "", "", ""},
                               {"present", Type::texts, 1, "", "", "globs"},
                               {"absent", Type::texts, 1, "", "", "globs"},
                               {"same_as", Type::reference, 1, "", "", "a save or checkpoint"},
                               {"differs_from", Type::reference, 1, "", "", ""}},
                              in_and_name)},
        {"expect.buffers",
         {{"kind", Type::word, 1, "pinned|host|device", "", ""},
          {"same_as", Type::reference, 1, "", "", "the same allocations"},
          {"of", Type::texts, 1, "", "all", "parameter names or globs"},
          {"key", Type::words, 1, "exp_avg|exp_avg_sq|max_exp_avg_sq|step", "moments", ""},
          {"name", Type::text, 1, "", "", "part of the path"}}},
        {"expect.refused", error_words()},
        {"expect.error",
         with(error_words(),
              {{"on", Type::ranks, 1, "all|survivors", "\"all\"", ""},
               {"leaves", Type::word, 1, "unchanged|torn|anything", "\"unchanged\"", ""},
               {"within", Type::duration, 1, "", "", "how soon, from the step's begin on"}})},
        {"expect.findings",
         {{"is", Type::words, 1, finding_kinds, "", "exactly these kinds"},
          {"name", Type::text, 1, "", "", "part of the path"}}},
        {"expect.trace",
         {{"same_as", Type::reference, 1, "", "", "the same operations in the same order"},
          {"tag", Type::words, 1, "device|storage", "both where both steps use storage", ""},
          {"name", Type::text, 1, "", "", "part of the path"}}},
        {"relation",
         {{"at_most", Type::figure, 1, "", "", ""},
          {"at_least", Type::figure, 1, "", "", ""},
          {"same_as", Type::reference, 1, "", "", "the same figure there"},
          {"is", Type::figure, 1, "", "", "exactly"}}},
        {"case",
         {{"optimizer", Type::word, 1, "swap_adamw|adamw", "", "a sound one"},
          {"specimen", Type::texts, 1, "", "", "list of defects (swaplab list --defects)"},
          {"verdict", Type::word, 1, "passes", "", ""},
          {"fails", Type::free, 1, "", "", "paths of expectations, or { expect, found }"},
          {"with", Type::patch, 1, "", "", "patches the set-up for this case"},
          {"where", Type::free, 1, "", "", "keeps it to cells of the matrix"},
          {"exec", Type::text, 3, "", "", ""}}},
    };
}

}  // namespace

const std::vector<Section>& sections() {
    static const std::vector<Section> all = [] {
        std::vector<Section> out = set_up_sections();
        for (const auto& more : {model_sections(), step_sections(), save_and_load_sections(),
                                 change_sections(), expectation_sections(), subject_sections()}) {
            out.insert(out.end(), more.begin(), more.end());
        }
        return out;
    }();
    return all;
}

const Section& section(std::string_view name) {
    const auto& all = sections();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Section& s) { return s.name == name; });
    SWAPLAB_ASSERT(found != all.end(), "no section " + std::string(name));
    return *found;
}

const Word* find_word(const Section& in, std::string_view name) {
    const auto found = std::find_if(in.words.begin(), in.words.end(),
                                    [&](const Word& word) { return word.name == name; });
    return found == in.words.end() ? nullptr : &*found;
}

const std::vector<std::string>& verbs() {
    static const std::vector<std::string> all{
        "train",      "save", "load",   "restart", "set",     "add_param_group",
        "init_state", "edit", "damage", "hold",    "release", "repeat"};
    return all;
}

std::vector<ListedWord> listed_words(std::string_view prefix) {
    std::vector<ListedWord> out;
    for (const Section& in : sections()) {
        for (const Word& word : in.words) {
            std::string path = fmt::format("{}.{}", in.name, word.name);
            if (path.compare(0, prefix.size(), prefix) == 0 || prefix == word.name) {
                out.push_back({std::move(path), word.stage > 1 ? "" : expected_text(word),
                               word.stage, word.fallback, word.says});
            }
        }
    }
    return out;
}

std::string list_words(std::string_view prefix) {
    std::string out;
    for (const ListedWord& word : listed_words(prefix)) {
        const std::string takes =
            word.stage > 1 ? fmt::format("of stage {}", word.stage) : word.takes;
        const std::string fallback = word.fallback.empty() ? "" : "default " + word.fallback;
        std::string row =
            fmt::format("{:<28} {:<48} {:<24} {}", word.path, takes, fallback, word.says);
        row.erase(row.find_last_not_of(' ') + 1);
        out += row + "\n";
    }
    return out;
}

}  // namespace swaplab::harness::scenario
