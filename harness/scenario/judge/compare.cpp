#include "scenario/judge/compare.hpp"

#include "scenario/play/node_value.hpp"
#include "scenario/play/seeded_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

namespace swaplab::harness::scenario {
namespace {

using optim::Dict;
using optim::Value;

bool chosen(const std::vector<std::string>& list, const std::string& name) {
    return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

bool is_moment(const std::string& key) {
    return key != "step";
}

/// A tensor by the name under which it is compared and reported.
struct Named {
    std::string param;
    std::string key;  ///< empty: the parameter
    const GlobalTensor* tensor = nullptr;

    [[nodiscard]] std::string name() const { return key.empty() ? param : param + "." + key; }
};

std::vector<Named> chosen_tensors(const GlobalState& state, Subject subject,
                                  const Selectors& select, View view) {
    std::vector<Named> out;
    const bool whole = subject == Subject::everything;
    const bool params = whole || subject == Subject::params;
    const bool moments = whole || subject == Subject::state || subject == Subject::moments;
    const bool steps = whole || subject == Subject::state || subject == Subject::steps;
    for (const auto& [name, tensor] : state.params) {
        if (params && select.keys.empty() && chosen(select.of, name)) {
            out.push_back({name, "", &tensor});
        }
    }
    for (const auto& [name, keys] : state.views[static_cast<std::size_t>(view)].state) {
        for (const auto& [key, tensor] : keys) {
            const bool wanted = is_moment(key) ? moments : steps;
            if (wanted && chosen(select.of, name) && chosen(select.keys, key)) {
                out.push_back({name, key, &tensor});
            }
        }
    }
    return out;
}

float float_at(const GlobalTensor& tensor, std::size_t element) {
    float value = 0;
    std::memcpy(&value, tensor.bytes.data() + element * sizeof(float), sizeof value);
    return value;
}

bool same_float(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
           (std::isnan(a) && std::isnan(b));
}

void note_element(TensorDifference& out, const Named& named, std::size_t element, float found,
                  float expected) {
    const GlobalTensor& tensor = *named.tensor;
    ++out.differing;
    const auto position = static_cast<std::int64_t>(element);
    const double distance = std::fabs(static_cast<double>(found) - static_cast<double>(expected));
    if (out.differing == 1 || distance > out.largest) {
        out.largest = distance;
        out.largest_index = index_text(tensor.shape, position);
    }
    if (!out.first) {
        FirstDifference first;
        first.rank = owner_of(tensor, position);
        first.tensor = named.key.empty() ? "parameter " + named.param : named.name();
        first.index = index_text(tensor.shape, position);
        first.expected_bits = fmt::format("{:08x}", std::bit_cast<std::uint32_t>(expected));
        first.found_bits = fmt::format("{:08x}", std::bit_cast<std::uint32_t>(found));
        first.expected = static_cast<double>(expected);
        first.found = static_cast<double>(found);
        first.ulp = ulp_distance(found, expected);
        out.first = std::move(first);
    }
}

TensorDifference compare_tensor(const Named& found, const GlobalTensor* expected) {
    TensorDifference out;
    out.name = found.name();
    out.elements = optim::numel(found.tensor->shape);
    const auto all_differ = [&](std::string note) {
        out.note = std::move(note);
        out.differing = std::max<std::int64_t>(out.elements, 1);
    };
    if (expected == nullptr) {
        all_differ("not in the reference");
    } else if (expected->shape != found.tensor->shape || expected->dtype != found.tensor->dtype) {
        all_differ(
            fmt::format("{} {}, the reference has {} {}", sim::short_name_of(found.tensor->dtype),
                        optim::to_string(found.tensor->shape), sim::short_name_of(expected->dtype),
                        optim::to_string(expected->shape)));
    } else if (!found.tensor->problem.empty() || !expected->problem.empty()) {
        all_differ(found.tensor->problem.empty() ? "in the reference " + expected->problem
                                                 : found.tensor->problem);
    } else if (found.tensor->dtype != sim::DType::float32) {
        if (found.tensor->bytes != expected->bytes) {
            all_differ("bytes differ");
        }
    } else {
        for (std::size_t i = 0; i < static_cast<std::size_t>(out.elements); ++i) {
            const float a = float_at(*found.tensor, i);
            const float b = float_at(*expected, i);
            if (!same_float(a, b)) {
                note_element(out, found, i, a, b);
            }
        }
    }
    return out;
}

const std::vector<Value>* sequence(const Value& value) {
    if (const auto* list = value.get_if<optim::List>()) {
        return &list->items;
    }
    const auto* tuple = value.get_if<optim::Tuple>();
    return tuple != nullptr ? &tuple->items : nullptr;
}

std::optional<double> number(const Value& value) {
    if (const auto* real = value.get_if<double>()) {
        return *real;
    }
    const auto* integer = value.get_if<std::int64_t>();
    return integer != nullptr ? std::optional<double>(static_cast<double>(*integer)) : std::nullopt;
}

/// Python's ==, more or less: 1 == 1.0, a list equals a tuple of the same items.
bool equal_values(const Value& a, const Value& b) {
    const auto* left = sequence(a);
    const auto* right = sequence(b);
    if (left != nullptr && right != nullptr) {
        return left->size() == right->size() &&
               std::equal(left->begin(), left->end(), right->begin(), equal_values);
    }
    const auto x = number(a);
    const auto y = number(b);
    if (x && y) {
        return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y);
    }
    return optim::same_value(a, b);
}

const Value& value_or_none(const Dict& dict, const std::string& key) {
    static const Value none;
    const Value* found = dict.find(key);
    return found != nullptr ? *found : none;
}

void compare_group(const Dict& found, const Dict& expected, std::size_t group,
                   const Selectors& select, std::vector<TensorDifference>& out) {
    std::set<std::string> keys;
    for (const Dict* dict : {&found, &expected}) {
        for (const auto& [key, value] : dict->items) {
            if (const auto* name = key.get_if<std::string>()) {
                keys.insert(*name);
            }
        }
    }
    for (const std::string& key : keys) {
        if (!chosen(select.keys, key)) {
            continue;
        }
        TensorDifference one;
        one.name = fmt::format("group {} {}", group, key);
        one.elements = 1;
        const Value& a = value_or_none(found, key);
        const Value& b = value_or_none(expected, key);
        if (!equal_values(a, b)) {
            one.differing = 1;
            one.note = fmt::format("expected {}, found {}", optim::repr(b), optim::repr(a));
        }
        out.push_back(std::move(one));
    }
}

void compare_groups(const std::vector<Dict>& found, const std::vector<Dict>& expected,
                    const Selectors& select, std::vector<TensorDifference>& out) {
    if (found.size() != expected.size()) {
        TensorDifference one;
        one.name = "groups";
        one.elements = 1;
        one.differing = 1;
        one.note = fmt::format("expected {} groups, found {}", expected.size(), found.size());
        out.push_back(std::move(one));
    }
    for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
        if (!select.group || *select.group == i) {
            compare_group(found[i], expected[i], i, select, out);
        }
    }
}

bool has_groups(Subject subject) {
    return subject == Subject::groups || subject == Subject::state ||
           subject == Subject::everything;
}

TensorDifference unreadable(const std::string& problem) {
    TensorDifference one;
    one.name = "state";
    one.elements = 1;
    one.differing = 1;
    one.note = problem;
    return one;
}

TensorDifference compare_constant(const Named& named, double value) {
    TensorDifference out;
    out.name = named.name();
    out.elements = optim::numel(named.tensor->shape);
    if (named.tensor->dtype != sim::DType::float32 || !named.tensor->problem.empty()) {
        out.differing = std::max<std::int64_t>(out.elements, 1);
        out.note = named.tensor->problem.empty() ? "not fp32" : named.tensor->problem;
        return out;
    }
    const auto expected = static_cast<float>(value);
    for (std::size_t i = 0; i < static_cast<std::size_t>(out.elements); ++i) {
        const float found = float_at(*named.tensor, i);
        if (!same_float(found, expected)) {
            note_element(out, named, i, found, expected);
        }
    }
    return out;
}

void compare_group_values(const GlobalState& found, const Node& value, const Selectors& select,
                          View view, std::vector<TensorDifference>& out) {
    const auto& groups = found.views[static_cast<std::size_t>(view)].groups;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        if (select.group && *select.group != i) {
            continue;
        }
        Dict expected;
        Selectors keys;
        for (const NodeEntry& entry : value.entries) {
            expected.set(entry.key, to_value(entry.value));
            keys.keys.push_back(entry.key);
        }
        for (const std::string& key : select.keys) {
            expected.set(key, to_value(value));
            keys.keys.push_back(key);
        }
        compare_group(groups[i], expected, i, keys, out);
    }
}

}  // namespace

std::uint64_t ulp_distance(float a, float b) noexcept {
    const auto ordered = [](float value) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        const bool negative = (bits >> 31U) != 0;
        const auto magnitude = static_cast<std::int64_t>(bits & 0x7fffffffU);
        return negative ? -1 - magnitude : magnitude;
    };
    const std::int64_t distance = ordered(a) - ordered(b);
    return static_cast<std::uint64_t>(distance < 0 ? -distance : distance);
}

std::vector<TensorDifference> compare_states(const GlobalState& found, const GlobalState& expected,
                                             Subject subject, const Selectors& select, View view) {
    std::vector<TensorDifference> out;
    const GlobalView& found_view = found.views[static_cast<std::size_t>(view)];
    const GlobalView& expected_view = expected.views[static_cast<std::size_t>(view)];
    if (subject != Subject::params) {
        for (const GlobalView* side : {&found_view, &expected_view}) {
            if (!side->problem.empty()) {
                out.push_back(unreadable(side->problem));
            }
        }
    }
    const auto expected_tensors = chosen_tensors(expected, subject, select, view);
    const auto found_tensors = chosen_tensors(found, subject, select, view);
    const auto named = [](const std::vector<Named>& list, const std::string& name) {
        return std::find_if(list.begin(), list.end(),
                            [&](const Named& one) { return one.name() == name; });
    };
    for (const Named& one : found_tensors) {
        const auto other = named(expected_tensors, one.name());
        out.push_back(
            compare_tensor(one, other == expected_tensors.end() ? nullptr : other->tensor));
    }
    for (const Named& one : expected_tensors) {
        if (named(found_tensors, one.name()) == found_tensors.end()) {
            TensorDifference missing;
            missing.name = one.name();
            missing.elements = optim::numel(one.tensor->shape);
            missing.differing = std::max<std::int64_t>(missing.elements, 1);
            missing.note = "missing";
            out.push_back(std::move(missing));
        }
    }
    const bool only_tensor_keys =
        !select.keys.empty() &&
        std::all_of(select.keys.begin(), select.keys.end(), [](const std::string& key) {
            return key == "step" || key.find("exp_avg") != std::string::npos;
        });
    if (has_groups(subject) && select.of.empty() && !only_tensor_keys) {
        compare_groups(found_view.groups, expected_view.groups, select, out);
    }
    return out;
}

std::vector<TensorDifference> compare_values(const GlobalState& found, const Node& value,
                                             Subject subject, const Selectors& select, View view) {
    std::vector<TensorDifference> out;
    const GlobalView& chosen_view = found.views[static_cast<std::size_t>(view)];
    if (subject != Subject::params && !chosen_view.problem.empty()) {
        out.push_back(unreadable(chosen_view.problem));
    }
    if (subject == Subject::groups) {
        compare_group_values(found, value, select, view, out);
        return out;
    }
    const auto tensors = chosen_tensors(found, subject, select, view);
    for (const Named& one : tensors) {
        const Node* wanted = value.is(Node::Kind::table) ? value.find(one.param) : &value;
        if (wanted != nullptr) {
            out.push_back(compare_constant(one, wanted->number()));
        }
    }
    for (const NodeEntry& entry : value.entries) {
        const bool there = std::any_of(tensors.begin(), tensors.end(),
                                       [&](const Named& one) { return one.param == entry.key; });
        if (!there) {
            TensorDifference missing;
            missing.name = entry.key;
            missing.elements = 1;
            missing.differing = 1;
            missing.note = "missing";
            out.push_back(std::move(missing));
        }
    }
    return out;
}

}  // namespace swaplab::harness::scenario
