#include "specimens/group_values.hpp"

#include <algorithm>
#include <array>

namespace swaplab::harness {

using optim::Dict;
using optim::Value;

namespace {

std::optional<double> number(const Value& value) {
    if (const auto* real = value.get_if<double>()) {
        return *real;
    }
    if (const auto* integer = value.get_if<std::int64_t>()) {
        return static_cast<double>(*integer);
    }
    if (const auto* flag = value.get_if<bool>()) {
        return *flag ? 1.0 : 0.0;
    }
    if (const auto* tensor = value.get_if<optim::Tensor>()) {
        return static_cast<double>(optim::to_floats(*tensor).at(0));
    }
    return std::nullopt;
}

const std::vector<Value>* items(const Value& value) {
    if (const auto* tuple = value.get_if<optim::Tuple>()) {
        return &tuple->items;
    }
    if (const auto* list = value.get_if<optim::List>()) {
        return &list->items;
    }
    return nullptr;
}

void take_betas(const Dict& saved, optim::AdamWOptions& options) {
    const Value* betas = saved.find("betas");
    const auto* both = betas == nullptr ? nullptr : items(*betas);
    if (both != nullptr && both->size() == 2) {
        options.beta1 = number((*both)[0]).value_or(options.beta1);
        options.beta2 = number((*both)[1]).value_or(options.beta2);
    }
}

/// What AdamWOptions and the parameters stand for; the rest is kept as it is.
bool is_own_key(const std::string& key) {
    static const std::array<std::string_view, 8> own{
        "params",       "lr",      "betas",    "eps",
        "weight_decay", "amsgrad", "maximize", "decoupled_weight_decay"};
    return std::find(own.begin(), own.end(), key) != own.end();
}

}  // namespace

std::vector<std::string> param_names(const Dict& group) {
    std::vector<std::string> names;
    const Value* params = group.find("params");
    const auto* list = params == nullptr ? nullptr : items(*params);
    if (list != nullptr) {
        for (const Value& name : *list) {
            const auto* text = name.get_if<std::string>();
            names.push_back(text == nullptr ? optim::repr(name) : *text);
        }
    }
    return names;
}

std::optional<double> number_under(const Dict& group, std::string_view key) {
    const Value* value = group.find(key);
    return value == nullptr ? std::nullopt : number(*value);
}

void take_group(const Dict& saved, optim::ParamGroup& live) {
    optim::AdamWOptions& options = live.options;
    options.lr = number_under(saved, "lr").value_or(options.lr);
    options.eps = number_under(saved, "eps").value_or(options.eps);
    options.weight_decay = number_under(saved, "weight_decay").value_or(options.weight_decay);
    options.amsgrad = number_under(saved, "amsgrad").value_or(0.0) != 0.0;
    options.maximize = number_under(saved, "maximize").value_or(0.0) != 0.0;
    take_betas(saved, options);
    live.extra.items.clear();
    for (const auto& [key, value] : saved.items) {
        const auto* text = key.get_if<std::string>();
        if (text != nullptr && !is_own_key(*text)) {
            live.extra.set(*text, value);
        }
    }
}

}  // namespace swaplab::harness
