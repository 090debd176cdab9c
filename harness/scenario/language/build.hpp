#pragma once

/// From the tree of a file to the model of a run. Values of a wrong type were reported by
/// check_words() already and read as their defaults here.

#include "scenario/language/model.hpp"

#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// Readers with a default.
[[nodiscard]] std::string text_or(const Node& table, std::string_view key, std::string fallback);
[[nodiscard]] std::int64_t count_or(const Node& table, std::string_view key, std::int64_t fallback);
[[nodiscard]] bool flag_or(const Node& table, std::string_view key, bool fallback);
/// More than 0 bytes.
[[nodiscard]] std::uint64_t bytes_or(const Node& table, std::string_view key,
                                     std::uint64_t fallback);
[[nodiscard]] const Node& table_or_empty(const Node& table, std::string_view key);
/// One text or a list of them; empty when absent.
[[nodiscard]] std::vector<std::string> texts(const Node& table, std::string_view key);
[[nodiscard]] Shape shape_of(const Node& list);
/// The same for a tensor, which has at most 2^28 elements (a dim of 0 counts as 1) and 64 dims.
[[nodiscard]] Shape tensor_shape_of(const Node& list, Diagnostics& diagnostics);
/// Hyper-parameters that `table` names. Those that torch.optim.AdamW refuses are reported in its
/// words; what fp32 cannot hold, too.
[[nodiscard]] HyperPatch hyper_patch(const Node& table, Diagnostics& diagnostics);
/// A learning rate by the same rules.
void check_lr(const Node& value, Diagnostics& diagnostics);
[[nodiscard]] Checks checks_from(std::string_view name);
[[nodiscard]] Parts parts_from(const Node& table, const Node& engine);
[[nodiscard]] ParamSpec param_spec(const Node& table, const Shape& mesh, Diagnostics& diagnostics);

/// Names of parameters in order of registration, and where the file says so; empty = file order.
struct Order {
    std::vector<std::string> names;
    Position at;
};

/// The set-up tables.
[[nodiscard]] SetUp build_set_up(const Node& document, const Order& order,
                                 Diagnostics& diagnostics);

/// Letters, digits, . _ - and at most 64 of them, for what names files and stands in reports.
[[nodiscard]] bool is_plain(const std::string& name);
/// "uninterrupted" and the like, which no save or label may be called.
[[nodiscard]] bool is_reference(const std::string& name);

/// What a story knows at one of its steps, for names and references.
struct StoryNames {
    struct Saved {
        Position at;
        Via via = Via::dcp;
        bool checkpoint = false;
        bool used = false;
        int world_size = 1;
        bool history_known = true;
        std::size_t lives = 0;  ///< number of restarts before it
        Parts what;
    };
    std::vector<std::pair<std::string, Saved>> saves;
    std::vector<std::string> labels;  ///< of every step
    bool history_known = true;        ///< no given checkpoint was loaded since the last restart
    bool trained = false;
    std::size_t lives = 0;
    std::vector<std::size_t> lives_of_labels;  ///< of the steps so far: the process they end in
    std::vector<std::string> held;             ///< in this process

    [[nodiscard]] Saved* find(const std::string& name);
    [[nodiscard]] std::vector<std::string> saved_names() const;
};

/// What is known of a story between two of its steps.
struct StoryState {
    Node document;  ///< with the patches of restarts
    SetUp now;
    StoryNames names;
    Order order;
};

/// Gives `name` to something saved; reports names that are taken.
void take_name(const std::string& name, const StoryNames::Saved& saved, StoryNames& names,
               Diagnostics& diagnostics);

/// Reads the table of `verb` and moves `story` on to the end of that step. `fails`: the step is
/// expected to fail.
[[nodiscard]] Action build_action(const std::string& verb, const Node& table, bool fails,
                                  StoryState& story, Diagnostics& diagnostics);

/// Expectations of one table (`expect` of a step, or a final one), appended to `out`.
/// `label` is the step's, or "end".
void build_expectations(const Node& expect, const std::string& label, const SetUp& set_up,
                        StoryNames& names, std::vector<Expectation>& out, Diagnostics& diagnostics);

/// Names in `set_up` that the globs `patterns` select; reports a pattern that selects nothing.
[[nodiscard]] std::vector<std::string> select_params(const std::vector<std::string>& patterns,
                                                     const SetUp& set_up, Position at,
                                                     Diagnostics& diagnostics);

/// Who acts in a run. Its `fails` are as written until resolve_fails().
[[nodiscard]] CaseSpec build_case(const Node& node, Diagnostics& diagnostics);
/// Replaces the parts of paths in `fails` by the one path of `run` that each fits.
void resolve_fails(Run& run, Diagnostics& diagnostics);

/// A document whose matrix cell, case patches and options were applied already.
[[nodiscard]] Run build_run(const Node& document, const Node& which, Diagnostics& diagnostics);

}  // namespace swaplab::harness::scenario
