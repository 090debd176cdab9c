#pragma once

/// Optimizer state dicts, and where a load may take state from.

#include "swaplab/optim/param_group.hpp"
#include "swaplab/sim/error.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace swaplab::optim {

/// PyTorch's optimizer.state_dict() with names for ids: state[fqn][key] and param_groups[i][key].
/// Keys of a parameter's state: step (0-dim float32), exp_avg, exp_avg_sq, max_exp_avg_sq.
struct StateDict {
    std::vector<std::pair<std::string, Dict>> state;
    std::vector<Dict> param_groups;

    [[nodiscard]] const Dict* find(const std::string& fqn) const;
    [[nodiscard]] Dict* find(const std::string& fqn);
};

/// {"state": {...}, "param_groups": [...]}, as a checkpoint tree holds it.
[[nodiscard]] Value to_value(const StateDict& state_dict);
/// Inverse of to_value(). Throws ArgumentError naming the key that has another kind than expected.
[[nodiscard]] StateDict state_dict_from_value(const Value& value);

/// owned: an independent copy in host memory. live: tensors that share the optimizer's own buffers,
/// valid while it lives.
enum class Snapshot : std::uint8_t { owned, live };

/// One reason to refuse a load. All of them are collected before anything is said.
struct Mismatch {
    int rank = 0;
    std::string parameter;  ///< fqn, or empty
    std::string key;        ///< "exp_avg", "param_groups", or a full checkpoint key
    std::string expected;   ///< "[12,2]", "missing", "fp32", ...
    std::string found;
    std::string detail;           ///< "shard of rank 0 lost: 12 of 24 elements (50.0 %)", or empty
    std::vector<int> lost_ranks;  ///< ranks whose shards are not in the checkpoint
    friend bool operator==(const Mismatch&, const Mismatch&) = default;
};

/// The state offered was refused on all ranks; parameters, moments and steps are unchanged.
class CheckpointRejected : public std::runtime_error, public sim::Error {
  public:
    /// `operation`: "SwapAdamW::load". `subject`: "state dict" or the checkpoint's name.
    /// `mismatches`: of all ranks, in rank order. `advice`: what to do, instead of the advice for
    /// loads.
    CheckpointRejected(const std::string& operation, const std::string& subject, int world_size,
                       std::vector<Mismatch> mismatches, const std::string& advice = "");

    [[nodiscard]] const std::vector<Mismatch>& mismatches() const noexcept { return mismatches_; }
    [[nodiscard]] sim::ErrorKind kind() const noexcept override { return sim::ErrorKind::rejected; }
    [[nodiscard]] const sim::ErrorFields& fields() const noexcept override { return fields_; }
    [[nodiscard]] const char* message() const noexcept override { return what(); }

  private:
    std::vector<Mismatch> mismatches_;
    sim::ErrorFields fields_;
};

/// The optimizer's state is partly overwritten; step and save are refused until a complete load.
using TornState = sim::BasicError<sim::ErrorKind::torn, std::runtime_error>;

/// What a source says about one key of one parameter, before any payload is read.
struct SourceEntry {
    std::string key;
    bool is_tensor = false;
    DType dtype = DType::float32;
    Shape global_shape;
    /// false: a plain tensor (whole, or some rank's unknown part)
    bool has_shard_metadata = false;
    Value value;  ///< of a non-tensor (None, float step, ...)
};

/// Where a load takes its state from: a state dict in memory or a checkpoint. The optimizer checks
/// entries(), agrees with the other ranks, and only then reads.
class StateSource {
  public:
    StateSource() = default;
    StateSource(const StateSource&) = delete;
    StateSource& operator=(const StateSource&) = delete;
    virtual ~StateSource() = default;

    /// For errors: "state dict", or a checkpoint's name.
    [[nodiscard]] virtual std::string name() const = 0;
    /// Parameters that have state here, in stored order.
    [[nodiscard]] virtual std::vector<std::string> fqns() const = 0;
    /// Empty when there is no state for `fqn`.
    [[nodiscard]] virtual std::vector<SourceEntry> entries(const std::string& fqn) const = 0;
    [[nodiscard]] virtual const std::vector<Dict>& param_groups() const = 0;
    /// What the source itself finds wrong with `fqn` for a live tensor of shape `global_shape` held
    /// as `box` on this rank (lost shards, gaps, missing files). Empty: nothing.
    [[nodiscard]] virtual std::vector<Mismatch> check(const std::string& fqn,
                                                      const std::string& key, const Tensor& live,
                                                      int rank) const = 0;
    /// The state of `fqn`/`key` for the box that `live` describes, bytes
    /// [offset_bytes, offset_bytes + out.size()) of its local row-major order. Throws
    /// CheckpointCorrupt or StorageError.
    virtual void read(const std::string& fqn, const std::string& key, const Tensor& live, int rank,
                      std::uint64_t offset_bytes, std::span<std::byte> out) = 0;
};

/// A StateSource over a state dict in memory. The dict must outlive it and is never changed.
class StateDictSource : public StateSource {
  public:
    explicit StateDictSource(const StateDict& state_dict) : state_dict_(state_dict) {}

    [[nodiscard]] std::string name() const override { return "state dict"; }
    [[nodiscard]] std::vector<std::string> fqns() const override;
    [[nodiscard]] std::vector<SourceEntry> entries(const std::string& fqn) const override;
    [[nodiscard]] const std::vector<Dict>& param_groups() const override {
        return state_dict_.param_groups;
    }
    [[nodiscard]] std::vector<Mismatch> check(const std::string& fqn, const std::string& key,
                                              const Tensor& live, int rank) const override;
    void read(const std::string& fqn, const std::string& key, const Tensor& live, int rank,
              std::uint64_t offset_bytes, std::span<std::byte> out) override;

  private:
    const StateDict& state_dict_;
};

}  // namespace swaplab::optim
