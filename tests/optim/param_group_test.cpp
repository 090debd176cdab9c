#include "swaplab/optim/param_group.hpp"

#include "swaplab/sim/error.hpp"

#include <limits>

namespace swaplab::optim {
namespace {

ParamGroup group_of(std::vector<std::string> names) {
    ParamGroup group;
    for (std::string& name : names) {
        auto parameter = std::make_shared<Parameter>();
        parameter->name = std::move(name);
        group.params.push_back(std::move(parameter));
    }
    return group;
}

TEST(ParamGroups, DictHasThePyTorchKeysInPyTorchsOrder) {
    ParamGroup group = group_of({"a", "b"});
    group.extra.set("initial_lr", 0.5);
    EXPECT_EQ(repr(to_dict(group)),
              "{'lr': 0.001, 'betas': (0.9, 0.999), 'eps': 1e-08, 'weight_decay': 0.01, "
              "'amsgrad': False, 'maximize': False, 'foreach': None, 'capturable': False, "
              "'differentiable': False, 'fused': None, 'decoupled_weight_decay': True, "
              "'initial_lr': 0.5, 'params': ['a', 'b']}");
}

TEST(ParamGroups, FlagsOfOtherCodePathsAreKeptInTheirPlace) {
    ParamGroup group = group_of({});
    group.extra.set("fused", true);
    group.extra.set("lr", 7.0);
    EXPECT_EQ(repr(to_dict(group)),
              "{'lr': 0.001, 'betas': (0.9, 0.999), 'eps': 1e-08, 'weight_decay': 0.01, "
              "'amsgrad': False, 'maximize': False, 'foreach': None, 'capturable': False, "
              "'differentiable': False, 'fused': True, 'decoupled_weight_decay': True, "
              "'params': []}");
}

std::string refusal(const AdamWOptions& options) {
    try {
        check_options(options);
    } catch (const sim::ArgumentError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(Options, AreRefusedWithPyTorchsTextsInPyTorchsOrder) {
    AdamWOptions options{-1.0, 1.0, -0.5, -1e-8, -0.1};
    EXPECT_EQ(refusal(options), "Invalid learning rate: -1.0");
    options.lr = 0.0;
    EXPECT_EQ(refusal(options), "Invalid epsilon value: -1e-08");
    options.eps = 0.0;
    EXPECT_EQ(refusal(options), "Invalid beta parameter at index 0: 1.0");
    options.beta1 = 0.0;
    EXPECT_EQ(refusal(options), "Invalid beta parameter at index 1: -0.5");
    options.beta2 = 0.5;
    EXPECT_EQ(refusal(options), "Invalid weight_decay value: -0.1");
    options.weight_decay = 0.0;
    EXPECT_EQ(refusal(options), "accepted");
}

TEST(Options, NaNIsRefusedAndInfinityAccepted) {
    AdamWOptions options;
    options.lr = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(refusal(options), "Invalid learning rate: nan");
    options.lr = std::numeric_limits<double>::infinity();
    EXPECT_EQ(refusal(options), "accepted");
}

}  // namespace
}  // namespace swaplab::optim
