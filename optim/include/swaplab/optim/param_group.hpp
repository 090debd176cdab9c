#pragma once

/// Parameters and the hyper-parameters of their groups.

#include <memory>
#include <string>
#include <vector>

#include "swaplab/optim/value.hpp"

namespace swaplab::optim {

/// One trainable parameter of the model, local part. Owned by the model and shared with optimizers.
/// `data` and `grad` are float32 device tensors of equal local shape; both stay allocated.
struct Parameter {
    std::string name;          ///< fqn
    Tensor data;
    Tensor grad;
    bool has_grad = false;     ///< false = PyTorch's grad is None: step() skips the parameter
};
using ParameterPtr = std::shared_ptr<Parameter>;

/// AdamW's hyper-parameters with PyTorch's names and defaults.
struct AdamWOptions {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 1e-2;
    bool amsgrad = false;
    bool maximize = false;
    friend bool operator==(const AdamWOptions&, const AdamWOptions&) = default;
};

/// Throws ArgumentError with PyTorch's texts ("Invalid learning rate: -1.0", ...), in PyTorch's
/// order; NaN is rejected, +inf accepted.
void check_options(const AdamWOptions& options);

/// One element of optimizer.param_groups(). Live: what is written here is what the next step uses.
struct ParamGroup {
    std::vector<ParameterPtr> params;
    AdamWOptions options;
    /// further keys of the user or of the checkpoint (initial_lr, ...), kept as they are
    Dict extra;
};

/// A group as PyTorch 2.8 writes it: lr, betas, eps, weight_decay, amsgrad, maximize, foreach,
/// capturable, differentiable, fused, decoupled_weight_decay, extra keys, params (names).
[[nodiscard]] Dict to_dict(const ParamGroup& group);

}  // namespace swaplab::optim
