#include "swaplab/optim/saved_group.hpp"

#include "state_dicts/group_keys.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace swaplab::optim {
namespace {

/// A tensor of one element of a floating type as a number: PyTorch allows tensors for lr and betas.
std::optional<double> number_in(const Tensor& tensor) {
    if (!tensor.defined() || tensor.local_numel() != 1) {
        return std::nullopt;
    }
    const std::vector<std::byte> bytes = tensor.to_bytes();
    if (tensor.dtype() == DType::float32) {
        float value = 0;
        std::memcpy(&value, bytes.data(), sizeof(value));
        return static_cast<double>(value);
    }
    if (tensor.dtype() == DType::float64) {
        double value = 0;
        std::memcpy(&value, bytes.data(), sizeof(value));
        return value;
    }
    return std::nullopt;
}

std::optional<double> number_of(const Value& value) {
    if (const auto* real = value.get_if<double>()) {
        return *real;
    }
    if (const auto* whole = value.get_if<std::int64_t>()) {
        return static_cast<double>(*whole);
    }
    const auto* tensor = value.get_if<Tensor>();
    return tensor == nullptr ? std::nullopt : number_in(*tensor);
}

const std::vector<Value>* items_of(const Value& value) {
    if (const auto* tuple = value.get_if<Tuple>()) {
        return &tuple->items;
    }
    const auto* list = value.get_if<List>();
    return list == nullptr ? nullptr : &list->items;
}

bool holds_opaque(const Value& value) {
    if (const auto* items = items_of(value)) {
        return std::any_of(items->begin(), items->end(), holds_opaque);
    }
    if (const auto* dict = value.get_if<Dict>()) {
        return std::any_of(dict->items.begin(), dict->items.end(), [](const auto& item) {
            return holds_opaque(item.first) || holds_opaque(item.second);
        });
    }
    return value.get_if<Opaque>() != nullptr;
}

/// Values that name PyTorch's own choice between equivalent code paths.
bool is_default_flag(const std::string& key, const Value& value) {
    const auto* flag = value.get_if<bool>();
    return ((key == "foreach" || key == "fused") && value.is_none()) ||
           ((key == "capturable" || key == "differentiable") && flag != nullptr && !*flag);
}

class GroupReader {
  public:
    GroupReader(const Dict& saved, std::size_t index) : saved_(saved), index_(index) {}

    SavedGroup read() {
        AdamWOptions& options = out_.group.options;
        number("lr", options.lr);
        betas(options);
        number("eps", options.eps);
        number("weight_decay", options.weight_decay);
        flag("amsgrad", options.amsgrad);
        flag("maximize", options.maximize);
        names();
        extras();
        if (out_.mismatches.empty()) {
            validate(options);
        }
        return std::move(out_);
    }

  private:
    void refuse(const std::string& key, std::string expected, std::string found,
                std::string detail = "") {
        if (!SWAPLAB_MUTANT("load.group_values")) {
            out_.mismatches.push_back({0,
                                       "",
                                       "param_groups." + std::to_string(index_) + "." + key,
                                       std::move(expected),
                                       std::move(found),
                                       std::move(detail),
                                       {}});
        }
    }

    void refuse_value(const std::string& key, std::string expected, const Value* found) {
        refuse(key, std::move(expected), found == nullptr ? "missing" : repr(*found));
    }

    void number(const std::string& key, double& out) {
        const Value* value = saved_.find(key);
        const auto found = value == nullptr ? std::nullopt : number_of(*value);
        if (found) {
            out = *found;
        } else {
            refuse_value(key, "a number", value);
        }
    }

    void betas(AdamWOptions& options) {
        const Value* value = saved_.find("betas");
        const auto* items = value == nullptr ? nullptr : items_of(*value);
        if (items == nullptr || items->size() != 2 || !number_of((*items)[0]) ||
            !number_of((*items)[1])) {
            refuse_value("betas", "two numbers", value);
            return;
        }
        options.beta1 = *number_of((*items)[0]);
        options.beta2 = *number_of((*items)[1]);
    }

    void flag(const std::string& key, bool& out) {
        const Value* value = saved_.find(key);
        if (value == nullptr) {
            out = false;
            return;
        }
        const auto* found = value->get_if<bool>();
        if (found != nullptr) {
            out = *found;
        } else {
            refuse_value(key, "True or False", value);
        }
    }

    void names() {
        const Value* value = saved_.find("params");
        const auto* items = value == nullptr ? nullptr : items_of(*value);
        if (items == nullptr) {
            refuse_value("params", "a list of parameter names", value);
            return;
        }
        for (const Value& item : *items) {
            const auto* name = item.get_if<std::string>();
            if (name == nullptr) {
                refuse_value("params", "parameter names", &item);
                return;
            }
            out_.names.push_back(*name);
        }
    }

    void extras() {
        for (const auto& [key, value] : saved_.items) {
            const auto* name = key.get_if<std::string>();
            if (holds_opaque(value) || holds_opaque(key)) {
                refuse(name == nullptr ? repr(key) : *name, "plain values", repr(value),
                       "an object of a class that is not opened");
            } else if (name == nullptr) {
                out_.group.extra.items.emplace_back(key, deep_copy(value));
            } else if (!is_own_group_key(*name) && !is_default_flag(*name, value)) {
                out_.group.extra.set(*name, deep_copy(value));
            }
        }
    }

    void validate(const AdamWOptions& options) {
        try {
            check_options(options);
        } catch (const sim::ArgumentError& error) {
            refuse("(values)", "valid hyper-parameters", error.fields().at(0).value, error.what());
        }
    }

    const Dict& saved_;
    std::size_t index_;
    SavedGroup out_;
};

}  // namespace

SavedGroup read_group(const Dict& saved, std::size_t index) {
    return GroupReader(saved, index).read();
}

}  // namespace swaplab::optim
