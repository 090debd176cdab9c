#pragma once

/// JSON as the Python values that the oracle's scripts wrote, and short ways to get at them.
///
/// Everything here throws sim::ArgumentError when the text or a value is not what was asked for.

#include "swaplab/optim/value.hpp"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace swaplab::oracle {

using optim::Shape;
using optim::Value;

/// Objects become Dict in stored order, arrays List, integers beyond int64 BigInt, null None.
[[nodiscard]] Value parse_json(const std::string& text);

/// The member `key`; the first form throws when there is none, the second returns nullptr.
[[nodiscard]] const Value& at(const Value& object, std::string_view key);
[[nodiscard]] const Value* find(const Value& object, std::string_view key);
[[nodiscard]] const Value& at(const Value& array, std::size_t index);

[[nodiscard]] const std::vector<Value>& items(const Value& array);
/// items() that must be `count` many.
[[nodiscard]] const std::vector<Value>& items(const Value& array, std::size_t count);
[[nodiscard]] const std::vector<std::pair<Value, Value>>& members(const Value& object);
[[nodiscard]] const std::string& text(const Value& value);
[[nodiscard]] std::int64_t integer(const Value& value);
[[nodiscard]] double number(const Value& value);  ///< integers too
[[nodiscard]] bool flag(const Value& value);
[[nodiscard]] Shape shape(const Value& array);
[[nodiscard]] std::vector<std::string> texts(const Value& array);
/// Throws unless `object` has all of the first keys and no others than both lists name: a key that
/// nobody looks at would count as agreement.
void require_keys(const Value& object, std::initializer_list<std::string_view> required,
                  std::initializer_list<std::string_view> optional = {});
[[nodiscard]] bool is_object(const Value& value) noexcept;
[[nodiscard]] bool is_array(const Value& value) noexcept;
[[nodiscard]] bool is_text(const Value& value) noexcept;

}  // namespace swaplab::oracle
