#pragma once

/// Training runs of the oracle, repeated on simulated devices with the specimens and with ours.

#include "json_value.hpp"

#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace swaplab::oracle {

using Floats = std::vector<float>;
/// By parameter. Full means the global tensor, local this rank's part.
using Values = std::map<std::string, Floats>;

/// An optimizer of the oracle as one of ours.
struct Variant {
    enum class Class : std::uint8_t { specimen, swap_adamw, adamw };
    Class what = Class::specimen;
    std::vector<std::string> defects;  ///< of a specimen
};

/// V0 and V1 are specimens; V2, the right repair, is compared with SwapAdamW; AdamW with its twin.
/// Empty for other names.
[[nodiscard]] std::optional<Variant> variant_named(const std::string& name);

struct GroupSpec {
    std::vector<std::string> names;
    optim::AdamWOptions options;
};

/// The model: parameters in order, all Shard(0) over `world` ranks (plain tensors for one rank).
struct ModelSpec {
    std::vector<std::pair<std::string, Shape>> shapes;
    std::vector<GroupSpec> groups;
    int world = 1;
};

/// What `rank` of a Shard(0) world holds of a full row-major tensor.
[[nodiscard]] Floats local_rows(const Floats& full, const Shape& global_shape, int world, int rank);
/// Throws when there is no such parameter.
[[nodiscard]] const Shape& shape_of(const ModelSpec& model, const std::string& name);

/// "a": [5,3], ... in stored order.
[[nodiscard]] std::vector<std::pair<std::string, Shape>> read_shapes(const Value& object);
/// "a": "3f80...", ...
[[nodiscard]] Values read_values(const Value& object);
/// The same for inputs: throws unless it holds all elements of each of `shapes` and nothing else.
[[nodiscard]] Values read_full(const Value& object,
                               const std::vector<std::pair<std::string, Shape>>& shapes);
/// lr, betas, eps, weight_decay, amsgrad of `object`; those that it does not state from `options`.
[[nodiscard]] optim::AdamWOptions read_options(const Value& object,
                                               optim::AdamWOptions options = {});

/// Moments by key; a None leaf or missing key is absent.
using Moments = std::map<std::string, std::map<std::string, Floats>>;
[[nodiscard]] Moments read_moments(const Value& object);

/// What is visible of a run at one moment.
struct Entry {
    Values params;  ///< local
    Moments shown;  ///< of state_dict()
    Moments used;   ///< that the next step reads
    std::map<std::string, float> steps;
    optim::AdamWOptions live;          ///< that param_groups() shows for group 0
    optim::AdamWOptions used_options;  ///< that the next step uses for group 0
};

/// Parameters, moments that the step uses, and steps are equal, bit for bit.
[[nodiscard]] bool same_entry(const Entry& a, const Entry& b);

/// One rank's model and optimizer on one device.
class Run {
  public:
    /// `params`: full values to begin with.
    Run(sim::Device& device, sim::Communicator& communicator, const ModelSpec& model,
        const Variant& variant, const Values& params);

    /// Sets all gradients (full values), steps, drops the gradients.
    void step(const Values& gradients);
    void set_params(const Values& full);
    [[nodiscard]] Entry entry() const;
    [[nodiscard]] optim::Optimizer& optimizer() noexcept { return *optimizer_; }
    [[nodiscard]] const std::vector<optim::ParameterPtr>& params() const noexcept {
        return params_;
    }

  private:
    void write(const optim::Tensor& tensor, const Floats& full) const;

    ModelSpec model_;
    int rank_;
    sim::Stream stream_;
    std::vector<optim::ParameterPtr> params_;
    std::unique_ptr<optim::Optimizer> optimizer_;
};

/// Runs `program` on `world` ranks, each with a device of its own, and rethrows the root cause of a
/// failure.
void on_ranks(
    int world,
    const std::function<void(sim::Device& device, sim::Communicator& communicator)>& program);

/// How far parameters may be from PyTorch's after any number of steps: 2 * 2^-23 * the largest
/// magnitude of all of `expected`; docs/numerics.md says what was measured.
[[nodiscard]] double params_bound(const Values& expected);
/// The first parameter that is further from `expected`, or nothing.
[[nodiscard]] std::string params_apart(const Values& found, const Values& expected);
/// The same for moments, within 2^-23 * the largest magnitude of each: both sides round alike.
[[nodiscard]] std::string moments_apart(const Moments& found, const Moments& expected);
/// "" when equal, else what is different.
[[nodiscard]] std::string steps_apart(const std::map<std::string, float>& found,
                                      const Value& expected);

/// The same keys with the same bits.
[[nodiscard]] bool same_values(const Values& a, const Values& b);
[[nodiscard]] bool same_moments(const Moments& a, const Moments& b);

/// What is written through `a` can be read through `b`.
[[nodiscard]] bool same_memory(const optim::Tensor& a, const optim::Tensor& b);

/// Every leaf of `state_dict` that is a tensor; steps apart.
[[nodiscard]] Moments moments_of(const optim::StateDict& state_dict);

}  // namespace swaplab::oracle
