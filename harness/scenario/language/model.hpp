#pragma once

/// One run of a scenario: a story with every default spelled out. Plain values.

#include "scenario/language/amount.hpp"
#include "scenario/language/diagnostic.hpp"
#include "scenario/language/node.hpp"

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/fault_plan.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/world.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace swaplab::harness::scenario {

class Backend;

using optim::Shape;

struct ParamSpec {
    std::string name;
    Shape shape;
    std::vector<optim::Placement> placements;  ///< empty: Replicate() on every mesh axis
    std::optional<double> init;                ///< empty: seeded

    [[nodiscard]] optim::ShardSpec shard(const Shape& mesh) const;
    friend bool operator==(const ParamSpec&, const ParamSpec&) = default;
};

/// Hyper-parameters that a table names; the others stay.
struct HyperPatch {
    std::optional<double> lr, beta1, beta2, eps, weight_decay;
    std::optional<bool> amsgrad, maximize;

    void apply(optim::AdamWOptions& options) const;
    friend bool operator==(const HyperPatch&, const HyperPatch&) = default;
};

struct GroupSpec {
    std::vector<std::string> params;  ///< names in order of registration
    optim::AdamWOptions options;
    bool added = false;  ///< in the running process: buckets begin anew at it
    friend bool operator==(const GroupSpec&, const GroupSpec&) = default;
};

struct CheckpointSpec {
    std::string name;
    std::string path;  ///< as in the file, relative to it
    Position at;
    friend bool operator==(const CheckpointSpec&, const CheckpointSpec&) = default;
};

/// How a save keeps what it saves: a DCP directory, an owned state dict, or the live one.
enum class Via : std::uint8_t { dcp, memory, live };

struct SetUp {
    std::uint64_t seed = 1;
    std::int64_t timeout_ms = 10'000;
    sim::WorldKind world_kind = sim::WorldKind::fiber;
    int world_size = 1;
    Shape mesh{1};
    std::uint64_t capacity_bytes = std::uint64_t{1} << 30U;
    sim::Schedule schedule = sim::Schedule::fifo;
    bool every_order = false;  ///< schedule = "exhaustive"
    sim::AllocationPolicy allocator = sim::AllocationPolicy::raw;
    std::string profile = "unit";  ///< of devices, in charts of traces
    sim::PinnedPolicy pinned_policy = sim::PinnedPolicy::exact;
    std::optional<std::uint64_t> pinned_quota_bytes;   ///< of each rank
    std::optional<std::uint64_t> host_capacity_bytes;  ///< pageable memory of each rank
    bool posix = false;
    std::optional<std::uint64_t> disk_bytes;  ///< of all files
    std::uint64_t chunk_bytes = std::uint64_t{1} << 20U;
    std::vector<ParamSpec> params;  ///< in order of registration
    std::vector<GroupSpec> groups;
    std::string kind = "case";  ///< case, swap_adamw, adamw
    optim::AdamWOptions options;
    std::int64_t bucket_elements = 1024;
    int slots = 3;
    bool keep_slots = false;
    std::vector<CheckpointSpec> checkpoints;

    [[nodiscard]] const ParamSpec* find(const std::string& param) const;
    friend bool operator==(const SetUp&, const SetUp&) = default;
};

struct TrainStep {
    std::int64_t steps = 1;
    std::vector<std::string> none;  ///< names
    std::vector<std::string> zero;
    std::vector<double> lr;  ///< empty, or one per step
    std::string gradients;   ///< file, relative to the scenario; empty: seeded
    friend bool operator==(const TrainStep&, const TrainStep&) = default;
};

/// Parts of a run in the order in which they are saved or loaded.
struct Parts {
    bool model = true;
    bool optimizer = true;
    bool optimizer_first = false;
    bool given = false;  ///< the file names them
    friend bool operator==(const Parts&, const Parts&) = default;
};

struct SaveStep {
    std::string to;
    Via via = Via::dcp;
    Parts what;
    Checks checks = Checks::full;
    friend bool operator==(const SaveStep&, const SaveStep&) = default;
};

struct LoadStep {
    std::string from;
    bool from_checkpoint = false;
    Via via = Via::dcp;  ///< of what is loaded
    Parts what;
    bool load_states = true;
    bool load_args = true;
    Checks checks = Checks::full;
    optim::LoadOptions::Staging staging = optim::LoadOptions::Staging::none;
    optim::Snapshot template_kind = optim::Snapshot::owned;
    friend bool operator==(const LoadStep&, const LoadStep&) = default;
};

struct RestartStep {
    SetUp set_up;
    bool lose_unsynced = false;  ///< power is lost before it
    friend bool operator==(const RestartStep&, const RestartStep&) = default;
};

struct SetStep {
    std::size_t group = 0;
    HyperPatch patch;
    friend bool operator==(const SetStep&, const SetStep&) = default;
};

struct AddGroupStep {
    std::vector<ParamSpec> params;
    optim::AdamWOptions options;
    friend bool operator==(const AddGroupStep&, const AddGroupStep&) = default;
};

struct InitStateStep {
    friend bool operator==(const InitStateStep&, const InitStateStep&) = default;
};

struct EditStep {
    std::string in;
    Via via = Via::dcp;
    std::vector<std::string> params;  ///< names
    std::vector<std::string> keys;
    std::optional<std::size_t> group;
    bool drop = false;
    bool unshard = false;
    std::optional<Node> set;
    std::optional<Shape> shape;
    friend bool operator==(const EditStep&, const EditStep&) = default;
};

struct DamageStep {
    std::string in;
    std::string file;   ///< or
    std::string param;  ///< the file that holds this tensor
    std::string key;    ///< empty: the parameter itself
    /// Exactly one of these.
    std::optional<std::uint64_t> truncate_bytes;
    bool remove = false;
    std::optional<std::uint64_t> flip_offset;  ///< of the byte one bit of which turns over
    bool zero = false;
    std::optional<std::uint64_t> extend_bytes;
    std::string copy_from;  ///< a save or checkpoint
    friend bool operator==(const DamageStep&, const DamageStep&) = default;
};

/// Somebody else's memory, for example activations.
struct HoldStep {
    std::string name;
    sim::MemoryKind memory = sim::MemoryKind::device;
    bool outside_pool = false;  ///< device memory that no allocator here hands out
    Amount bytes;
    friend bool operator==(const HoldStep&, const HoldStep&) = default;
};

struct ReleaseStep {
    std::string name;
    friend bool operator==(const ReleaseStep&, const ReleaseStep&) = default;
};

/// The end of the last of several rounds, whose steps are steps of the story.
struct RepeatStep {
    std::size_t rounds = 0;
    std::size_t steps = 0;  ///< of one round
    friend bool operator==(const RepeatStep&, const RepeatStep&) = default;
};

using Action = std::variant<TrainStep, SaveStep, LoadStep, RestartStep, SetStep, AddGroupStep,
                            InitStateStep, EditStep, DamageStep, HoldStep, ReleaseStep, RepeatStep>;

struct FaultSpec {
    std::string at;
    std::int64_t nth = 1;
    bool each = false;  ///< the story is told once per pass
    int rank = 0;
    sim::FaultAction then = sim::FaultAction::fail;
    std::string disk_error;  ///< eio, enospc, short, lost; empty: the seam's own error
    std::optional<std::uint64_t> over_bytes;  ///< only passes of more bytes
    std::string file;                         ///< glob: only passes of such files; empty: any
    bool once = true;                         ///< false: every later pass, too
    std::int64_t by_ms = 0;                   ///< of a delay
    friend bool operator==(const FaultSpec&, const FaultSpec&) = default;
};

enum class Subject : std::uint8_t {
    runs,
    params,
    moments,
    steps,
    groups,
    state,
    everything,
    device,
    pinned,
    host,
    h2d,
    d2h,
    d2d,
    read,
    written,
    syncs,
    cover,
    files,
    buffers,
    refused,
    error,
    findings,
    trace,
};

[[nodiscard]] std::string_view name_of(Subject subject) noexcept;
[[nodiscard]] std::optional<Subject> subject_from_name(std::string_view name) noexcept;
[[nodiscard]] bool is_memory(Subject subject) noexcept;
/// Copies, accesses to files, waits of the host.
[[nodiscard]] bool is_traffic(Subject subject) noexcept;
[[nodiscard]] bool is_state(Subject subject) noexcept;

enum class Relation : std::uint8_t {
    equals,
    at_most,
    at_least,
    same_as,
    differs_from,
    present,
    absent
};

struct Reference {
    enum class Kind : std::uint8_t { none, before, start, label, save, uninterrupted, adamw };
    Kind kind = Kind::none;
    std::string name;            ///< as written
    std::size_t step_index = 0;  ///< of a label
    friend bool operator==(const Reference&, const Reference&) = default;
};

struct Selectors {
    std::vector<std::string> of;    ///< names; empty: all
    std::vector<std::string> keys;  ///< empty: all
    std::vector<std::string> tags;  ///< globs; empty: all
    std::optional<std::size_t> group;
    std::vector<int> ranks;  ///< empty: every rank
    bool rank_sum = false;
    std::string in;  ///< save or checkpoint; empty: live, or this step's
    bool step_view = true;
    bool state_dict_view = true;
    std::optional<Amount> up_to, above;
    std::optional<std::size_t> since;  ///< figures from the end of this step on
    bool all_elements = false;
    friend bool operator==(const Selectors&, const Selectors&) = default;
};

struct ErrorSpec {
    std::vector<std::string> naming;
    std::string kind;  ///< empty: any
    bool on_all = true;
    bool on_survivors = false;
    std::vector<int> on;
    enum class Leaves : std::uint8_t { unchanged, torn, anything };
    Leaves leaves = Leaves::unchanged;
    std::optional<std::int64_t> within_ms;  ///< of the step's begin, on each rank that fails
    friend bool operator==(const ErrorSpec&, const ErrorSpec&) = default;
};

/// Which bytes a figure of memory counts: charged ones, as asked for or in regions of 256 B; those
/// that this schedule occupied; those that the allocator took, handed out or kept; or the most that
/// may be occupied under any schedule.
enum class BytesOf : std::uint8_t { requested, rounded, occupied, reserved, worst };

/// "rounded", "occupied", "reserved", "worst"; of requested bytes nothing.
[[nodiscard]] std::string_view name_of(BytesOf bytes_of) noexcept;

struct Expectation {
    Position at;
    std::string text;  ///< expect.device.rise = "0 B"
    std::string path;  ///< load.device.rise
    Subject subject = Subject::runs;
    std::string word;  ///< peak, rise, bytes, count, missing, kind, ...
    BytesOf bytes_of = BytesOf::requested;
    Relation relation = Relation::equals;
    std::optional<Amount> amount;
    Reference reference;
    std::optional<Node> value;       ///< of `is`
    std::vector<std::string> names;  ///< findings, globs of files, a buffer kind, trace parts
    Selectors select;
    ErrorSpec error;
    bool by_default = false;  ///< LABEL.runs, LABEL.findings
    friend bool operator==(const Expectation&, const Expectation&) = default;
};

struct Step {
    std::string label;
    std::string verb;
    Position at;
    Action action;
    std::optional<FaultSpec> fault;
    std::vector<Expectation> expect;  ///< with the default ones
    SetUp before;                     ///< set-up in force when it starts, added groups included
    SetUp after;                      ///< and when it ends

    /// The step may end in an error without ending the story.
    [[nodiscard]] bool may_fail() const;
    /// It has a fault that ends the rank it befalls.
    [[nodiscard]] bool ends_a_rank() const;
    friend bool operator==(const Step&, const Step&) = default;
};

struct FailSpec {
    std::string path;  ///< of exactly one expectation
    std::optional<Node> found;
    Position at;
};

struct CaseSpec {
    Position at;
    std::string optimizer;             ///< swap_adamw, adamw; empty: a specimen
    std::vector<std::string> defects;  ///< of a specimen
    std::vector<FailSpec> fails;       ///< empty: must pass
    std::string text;                  ///< "swap_adamw", "specimen device_cast"
};

struct CellValue {
    std::string path;
    Node value;
};

/// Which of the operations that may run next did, on one rank of one process.
struct OrderChoice {
    std::uint64_t taken = 0;
    std::uint64_t count = 0;
    friend bool operator==(const OrderChoice&, const OrderChoice&) = default;
};
/// By the first step of the process, and rank.
using Orders = std::map<std::pair<std::size_t, int>, std::vector<OrderChoice>>;

struct Run {
    std::string name;  ///< "shards/lost[specimen local_moments, world.size=2]"
    std::string file;
    std::vector<CellValue> cell;
    CaseSpec which;
    SetUp start;
    std::vector<Step> steps;
    std::vector<Expectation> finals;
    const Backend* backend = nullptr;  ///< of its devices; nullptr: they are simulated
    bool traced = false;               ///< the runs of its devices are recorded
    Orders orders;  ///< with every_order: how this telling begins; then the first way is taken
};

}  // namespace swaplab::harness::scenario
