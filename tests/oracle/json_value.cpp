#include "json_value.hpp"

#include "swaplab/sim/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace swaplab::oracle {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& expected, const Value& found) {
    throw sim::ArgumentError("expected " + expected + ", found " + optim::repr(found).substr(0, 80),
                             {{"expected", expected}});
}

template <class T>
const T& as(const Value& value, const std::string& expected) {
    if (const T* found = value.get_if<T>()) {
        return *found;
    }
    refuse(expected, value);
}

Value convert(const Json& json) {
    switch (json.type()) {
        case Json::value_t::boolean:
            return json.get<bool>();
        case Json::value_t::number_integer:
            return json.get<std::int64_t>();
        case Json::value_t::number_float:
            return json.get<double>();
        case Json::value_t::string:
            return json.get<std::string>();
        case Json::value_t::number_unsigned: {
            const auto number = json.get<std::uint64_t>();
            if (number > static_cast<std::uint64_t>(INT64_MAX)) {
                return optim::BigInt{std::to_string(number)};
            }
            return static_cast<std::int64_t>(number);
        }
        case Json::value_t::array: {
            optim::List list;
            for (const Json& item : json) {
                list.items.push_back(convert(item));
            }
            return list;
        }
        case Json::value_t::object: {
            optim::Dict dict;
            for (const auto& [key, item] : json.items()) {
                dict.items.emplace_back(key, convert(item));
            }
            return dict;
        }
        default:
            return optim::None{};
    }
}

}  // namespace

Value parse_json(const std::string& source) {
    try {
        return convert(Json::parse(source));
    } catch (const Json::exception& error) {
        throw sim::ArgumentError(std::string("no JSON: ") + error.what());
    }
}

const Value* find(const Value& object, std::string_view key) {
    const auto* dict = object.get_if<optim::Dict>();
    return dict == nullptr ? nullptr : dict->find(key);
}

const Value& at(const Value& object, std::string_view key) {
    const Value* found = find(object, key);
    if (found == nullptr) {
        refuse("an object with \"" + std::string(key) + "\"", object);
    }
    return *found;
}

const Value& at(const Value& array, std::size_t index) {
    const auto& list = items(array);
    if (index >= list.size()) {
        refuse("more than " + std::to_string(index) + " items", array);
    }
    return list[index];
}

const std::vector<Value>& items(const Value& array) {
    return as<optim::List>(array, "an array").items;
}

const std::vector<Value>& items(const Value& array, std::size_t count) {
    const auto& list = items(array);
    if (list.size() != count) {
        refuse(std::to_string(count) + " items", array);
    }
    return list;
}

const std::vector<std::pair<Value, Value>>& members(const Value& object) {
    return as<optim::Dict>(object, "an object").items;
}

const std::string& text(const Value& value) {
    return as<std::string>(value, "a string");
}

std::int64_t integer(const Value& value) {
    return as<std::int64_t>(value, "an integer");
}

double number(const Value& value) {
    const auto* whole = value.get_if<std::int64_t>();
    return whole != nullptr ? static_cast<double>(*whole) : as<double>(value, "a number");
}

bool flag(const Value& value) {
    return as<bool>(value, "true or false");
}

Shape shape(const Value& array) {
    Shape sizes;
    for (const Value& item : items(array)) {
        sizes.push_back(integer(item));
    }
    return sizes;
}

std::vector<std::string> texts(const Value& array) {
    std::vector<std::string> result;
    for (const Value& item : items(array)) {
        result.push_back(text(item));
    }
    return result;
}

void require_keys(const Value& object, std::initializer_list<std::string_view> required,
                  std::initializer_list<std::string_view> optional) {
    for (const std::string_view key : required) {
        (void)at(object, key);
    }
    for (const auto& [key, value] : members(object)) {
        const std::string& name = text(key);
        if (std::find(required.begin(), required.end(), name) == required.end() &&
            std::find(optional.begin(), optional.end(), name) == optional.end()) {
            throw sim::ArgumentError("unknown key \"" + name + "\"", {{"key", name}});
        }
    }
}

bool is_object(const Value& value) noexcept {
    return value.get_if<optim::Dict>() != nullptr;
}
bool is_array(const Value& value) noexcept {
    return value.get_if<optim::List>() != nullptr;
}
bool is_text(const Value& value) noexcept {
    return value.get_if<std::string>() != nullptr;
}

}  // namespace swaplab::oracle
