#include "swaplab/optim/state_dict.hpp"

#include <algorithm>
#include <utility>

namespace swaplab::optim {
namespace {

[[noreturn]] void wrong_kind(const std::string& key, std::string_view expected,
                             const Value* found) {
    const std::string kind(found == nullptr ? "nothing" : kind_of(*found));
    throw sim::ArgumentError(
        "state dict key " + key + " must be a " + std::string(expected) + ", found " + kind,
        {{"key", key}, {"expected", std::string(expected)}, {"found", kind}});
}

template <class T>
const T& expect(const Value* value, const std::string& key, std::string_view expected) {
    const T* typed = value == nullptr ? nullptr : value->get_if<T>();
    if (typed == nullptr) {
        wrong_kind(key, expected, value);
    }
    return *typed;
}

}  // namespace

const Dict* StateDict::find(const std::string& fqn) const {
    const auto found = std::find_if(state.begin(), state.end(),
                                    [&](const auto& entry) { return entry.first == fqn; });
    return found == state.end() ? nullptr : &found->second;
}

Dict* StateDict::find(const std::string& fqn) {
    return const_cast<Dict*>(std::as_const(*this).find(fqn));
}

Value to_value(const StateDict& state_dict) {
    Dict state;
    for (const auto& [fqn, entries] : state_dict.state) {
        state.items.emplace_back(fqn, entries);
    }
    List groups;
    for (const Dict& group : state_dict.param_groups) {
        groups.items.emplace_back(group);
    }
    Dict root;
    root.set("state", std::move(state));
    root.set("param_groups", std::move(groups));
    return root;
}

StateDict state_dict_from_value(const Value& value) {
    const Dict& root = expect<Dict>(&value, "(root)", "dict");
    StateDict out;
    for (const auto& [key, entries] : expect<Dict>(root.find("state"), "state", "dict").items) {
        const std::string& fqn =
            expect<std::string>(&key, "state." + repr(key), "dict with parameter names as keys");
        out.state.emplace_back(fqn, expect<Dict>(&entries, "state." + fqn, "dict"));
    }
    const List& groups = expect<List>(root.find("param_groups"), "param_groups", "list");
    for (std::size_t i = 0; i < groups.items.size(); ++i) {
        const std::string key = "param_groups." + std::to_string(i);
        out.param_groups.push_back(expect<Dict>(&groups.items[i], key, "dict"));
    }
    return out;
}

}  // namespace swaplab::optim
