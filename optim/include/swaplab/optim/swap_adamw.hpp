#pragma once

/// SwapAdamW: AdamW whose moments live in pinned host memory and visit the device in buckets.

#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/device.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace swaplab::optim {

struct SwapAdamWOptions {
    /// Elements per bucket, > 0. A bucket is a contiguous range of elements of the flat parameter
    /// order and may split parameters; it ends early where amsgrad changes between groups.
    std::int64_t bucket_elements = 1024;
    int slots = 3;            ///< device slots in the ring, > 0
    bool keep_slots = false;  ///< keep them between steps instead of freeing them
};

/// Moments live in flat pinned arenas, bucket by bucket, 4 KiB-aligned, all moment kinds of a
/// bucket side by side. step() uploads, updates and downloads touched buckets through a ring of
/// device slots on three streams.
///
/// Device memory: nothing at construction, load and save; during step() exactly
/// min(slots, touched buckets) x bytes of the largest bucket, freed at its end unless keep_slots.
/// Order: parameters and gradients must be complete for the host when step() is called (written
/// through their storage, or their stream synchronized); step() returns when all of it has run.
/// A step that fails after it began leaves moments and parameters torn: load both.
/// Loading: check -> agree -> plan -> apply, host to host into the existing pinned memory.
/// Steps are one integer per parameter in host memory.
/// Threads: the rank's. The device, the communicator and the parameters must outlive it.
class SwapAdamW : public Optimizer {
  public:
    /// Collective. `groups` with float32 device parameters; state is created at once: zero moments,
    /// step 0. Throws ArgumentError (PyTorch's texts where it has them: empty parameter list, a
    /// parameter in two groups, invalid hyper-parameters).
    SwapAdamW(sim::Device& device, sim::Communicator& communicator, std::vector<ParamGroup> groups,
              const SwapAdamWOptions& options = {});
    ~SwapAdamW() override;

    void step() override;
    [[nodiscard]] StateDict state_dict(Snapshot how = Snapshot::owned) const override;
    [[nodiscard]] std::vector<Mismatch> check(const StateSource& source,
                                              const LoadOptions& options) const override;
    void load(StateSource& source, const LoadOptions& options = {}) override;
    void load_state_dict(const StateDict& saved) override;
    [[nodiscard]] std::vector<ParamGroup>& param_groups() noexcept override;
    void add_param_group(ParamGroup group) override;
    [[nodiscard]] bool torn() const noexcept override;
    [[nodiscard]] bool parameters_torn() const noexcept override;
    void set_parameters_torn(bool torn) noexcept override;

    /// Bytes of the largest bucket that exists, all moment kinds: the size of a device slot.
    [[nodiscard]] std::uint64_t slot_bytes() const noexcept;
    /// Buckets in which at least one parameter has a gradient now.
    [[nodiscard]] std::int64_t touched_buckets() const noexcept;
    [[nodiscard]] std::int64_t bucket_count() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace swaplab::optim
