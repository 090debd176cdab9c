#include "swaplab/optim/value.hpp"

#include <fmt/format.h>

#include <cmath>

namespace swaplab::optim {
namespace {

std::string repr_float(double value) {
    if (std::isnan(value)) {
        return "nan";
    }
    std::string text = fmt::format("{}", value);
    const bool whole = text.find_first_of(".en") == std::string::npos;
    return whole ? text + ".0" : text;
}

std::string quoted(std::string_view text, bool escape_high) {
    const bool has_single = text.find('\'') != std::string_view::npos;
    const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
    std::string out(1, quote);
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (c == quote || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\r') {
            out += "\\r";
        } else if (c == '\t') {
            out += "\\t";
        } else if (code < 0x20 || code == 0x7f || (escape_high && code > 0x7f)) {
            out += fmt::format("\\x{:02x}", static_cast<unsigned>(code));
        } else {
            out += c;
        }
    }
    return out + quote;
}

std::string joined(const std::vector<Value>& items) {
    std::string text;
    for (const Value& item : items) {
        text += (text.empty() ? "" : ", ") + repr(item);
    }
    return text;
}

struct Repr {
    std::string operator()(None) const { return "None"; }
    std::string operator()(bool value) const { return value ? "True" : "False"; }
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(const BigInt& value) const { return value.decimal; }
    std::string operator()(double value) const { return repr_float(value); }
    std::string operator()(const std::string& value) const { return quoted(value, false); }
    std::string operator()(const PyBytes& value) const { return "b" + quoted(value.data, true); }
    std::string operator()(const List& list) const { return "[" + joined(list.items) + "]"; }
    std::string operator()(const Tuple& tuple) const {
        return "(" + joined(tuple.items) + (tuple.items.size() == 1 ? ",)" : ")");
    }
    std::string operator()(const Dict& dict) const {
        std::string text;
        for (const auto& [key, value] : dict.items) {
            text += (text.empty() ? "" : ", ") + repr(key) + ": " + repr(value);
        }
        return dict.ordered_dict ? "OrderedDict({" + text + "})" : "{" + text + "}";
    }
    std::string operator()(const Tensor& tensor) const {
        if (!tensor.defined()) {
            return "tensor (undefined)";
        }
        return fmt::format("tensor {} {}", sim::name_of(tensor.dtype()),
                           to_string(tensor.global_shape()));
    }
    std::string operator()(const Opaque& object) const { return "object " + object.class_name; }
};

}  // namespace

std::string repr(const Value& value) {
    return std::visit(Repr{}, value.data());
}

}  // namespace swaplab::optim
