#include "checkpoint/pickle_reader.hpp"

#include "checkpoint/pickle_opcode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace swaplab::harness {
namespace {

using Kind = PickleNode::Kind;

constexpr std::uint64_t longest_integer_bytes = 256;
constexpr std::size_t longest_name = 512;

class PickleParser {
  public:
    PickleParser(std::span<const std::byte> bytes, const PickleRules& rules)
        : bytes_(bytes), rules_(rules) {}

    PickleGraph parse() {
        while (true) {
            opcode_position_ = position_;
            const auto code = static_cast<std::uint8_t>(take_number(1));
            if (code == opcode::stop) {
                graph_.root = pop();
                return std::move(graph_);
            }
            if (!scalar(code) && !text(code) && !container(code) && !object(code) && !memo(code)) {
                throw FormatError(opcode_position_,
                                  fmt::format("opcode 0x{:02x}, which is not allowed", code));
            }
        }
    }

  private:
    // --- input ---
    std::string_view take(std::uint64_t count) {
        if (count > bytes_.size() - position_) {
            throw FormatError(position_, "the end of the pickle inside an object");
        }
        const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + position_;
        position_ += count;
        return {begin, static_cast<std::size_t>(count)};
    }

    std::uint64_t take_number(std::uint64_t width) {
        const std::string_view raw = take(width);
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < raw.size(); ++i) {
            value |= std::uint64_t{static_cast<std::uint8_t>(raw[i])} << (8U * i);
        }
        return value;
    }

    std::string_view take_line() {
        const std::size_t begin = position_;
        while (take(1)[0] != '\n') {
        }
        return {reinterpret_cast<const char*>(bytes_.data()) + begin, position_ - begin - 1};
    }

    // --- stack ---
    template <class Data>
    PickleNode* make(Kind kind, Data data, std::uint64_t position) {
        graph_.nodes.push_back({kind, position, std::move(data)});
        return &graph_.nodes.back();
    }
    template <class Data>
    bool push(Kind kind, Data data) {
        stack_.push_back(make(kind, std::move(data), opcode_position_));
        return true;
    }
    bool push_items(Kind kind, std::vector<NodeRef> items) { return push(kind, std::move(items)); }

    PickleNode* pop() {
        const std::size_t floor = marks_.empty() ? 0 : marks_.back();
        if (stack_.size() <= floor) {
            throw FormatError(opcode_position_, "an opcode that needs more objects than there are");
        }
        PickleNode* top = stack_.back();
        stack_.pop_back();
        return top;
    }
    PickleNode* top() {
        PickleNode* node = pop();
        stack_.push_back(node);
        return node;
    }
    std::vector<NodeRef> pop_count(std::size_t count) {
        std::vector<NodeRef> items(count);
        for (std::size_t i = count; i-- > 0;) {
            items[i] = pop();
        }
        return items;
    }
    std::vector<NodeRef> pop_to_mark() {
        if (marks_.empty()) {
            throw FormatError(opcode_position_, "an opcode that needs a mark where there is none");
        }
        std::vector<NodeRef> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                                   stack_.end());
        stack_.resize(marks_.back());
        marks_.pop_back();
        return items;
    }

    // --- opcodes ---
    bool scalar(std::uint8_t code) {
        switch (code) {
            case opcode::none:
                return push(Kind::none, std::int64_t{0});
            case opcode::newtrue:
                return push(Kind::boolean, std::int64_t{1});
            case opcode::newfalse:
                return push(Kind::boolean, std::int64_t{0});
            case opcode::binint1:
                return push_integer(take_number(1));
            case opcode::binint2:
                return push_integer(take_number(2));
            case opcode::binint:
                return push(Kind::integer, std::int64_t{static_cast<std::int32_t>(take_number(4))});
            case opcode::long1:
                return long_integer(take_number(1));
            case opcode::long4:
                return long_integer(take_number(4));
            case opcode::binfloat: {
                std::uint64_t bits = 0;
                for (const char c : take(8)) {
                    bits = (bits << 8U) | static_cast<std::uint8_t>(c);
                }
                return push(Kind::floating, std::bit_cast<double>(bits));
            }
            default:
                return false;
        }
    }

    bool push_integer(std::uint64_t value) {
        return push(Kind::integer, static_cast<std::int64_t>(value));
    }

    bool long_integer(std::uint64_t length) {
        if (length > longest_integer_bytes) {
            throw FormatError(opcode_position_, fmt::format("an integer of {} bytes", length));
        }
        const std::string_view raw = take(length);
        if (length > 8) {
            return push(Kind::big_integer, decimal_of(raw));
        }
        const bool negative = !raw.empty() && (static_cast<std::uint8_t>(raw.back()) & 0x80U) != 0;
        std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
        for (std::size_t i = raw.size(); i-- > 0;) {
            value = (value << 8U) | static_cast<std::uint8_t>(raw[i]);
        }
        return push(Kind::integer, static_cast<std::int64_t>(value));
    }

    bool text(std::uint8_t code) {
        switch (code) {
            case opcode::short_binunicode:
            case opcode::short_binstring:
                return push_text(Kind::text, 1);
            case opcode::binunicode:
            case opcode::binstring:
                return push_text(Kind::text, 4);
            case opcode::binunicode8:
                return push_text(Kind::text, 8);
            case opcode::short_binbytes:
                return push_text(Kind::bytes, 1);
            case opcode::binbytes:
                return push_text(Kind::bytes, 4);
            case opcode::binbytes8:
            case opcode::bytearray8:
                return push_text(Kind::bytes, 8);
            default:
                return false;
        }
    }
    bool push_text(Kind kind, std::uint64_t length_width) {
        return push(kind, std::string(take(take_number(length_width))));
    }

    bool container(std::uint8_t code) {
        switch (code) {
            case opcode::mark:
                marks_.push_back(stack_.size());
                return true;
            case opcode::empty_tuple:
                return push_items(Kind::tuple, {});
            case opcode::tuple1:
                return push_items(Kind::tuple, pop_count(1));
            case opcode::tuple2:
                return push_items(Kind::tuple, pop_count(2));
            case opcode::tuple3:
                return push_items(Kind::tuple, pop_count(3));
            case opcode::tuple:
                return push_items(Kind::tuple, pop_to_mark());
            case opcode::empty_list:
                return push_items(Kind::list, {});
            case opcode::append:
                return extend(Kind::list, pop_count(1));
            case opcode::appends:
                return extend(Kind::list, pop_to_mark());
            case opcode::empty_dict:
                return push_items(Kind::dict, {});
            case opcode::setitem:
                return extend(Kind::dict, pop_count(2));
            case opcode::setitems:
                return extend(Kind::dict, pop_to_mark());
            case opcode::empty_set:
                return push_foreign("builtins", "set", opcode_position_);
            case opcode::additems:
                return extend(Kind::foreign, pop_to_mark());
            case opcode::frozenset:
                pop_to_mark();
                return push_foreign("builtins", "frozenset", opcode_position_);
            case opcode::pop:
                pop();
                return true;
            case opcode::pop_mark:
                pop_to_mark();
                return true;
            case opcode::dup:
                stack_.push_back(top());
                return true;
            default:
                return false;
        }
    }

    bool extend(Kind kind, std::vector<NodeRef> items) {
        PickleNode* target = top();
        if (target->kind == Kind::foreign) {
            return true;
        }
        const bool is_dict = target->kind == Kind::dict || target->kind == Kind::ordered_dict;
        const bool fits =
            kind == Kind::dict ? is_dict && items.size() % 2 == 0 : target->kind == kind;
        if (!fits) {
            throw FormatError(opcode_position_, "items for an object that takes none");
        }
        auto& content = target->items();
        content.insert(content.end(), items.begin(), items.end());
        return true;
    }

    bool object(std::uint8_t code) {
        switch (code) {
            case opcode::global: {
                const std::uint64_t position = position_;
                const std::string_view module = take_line();
                return push_global(module, take_line(), position);
            }
            case opcode::stack_global: {
                const NodeRef name = pop();
                const NodeRef module = pop();
                if (name->kind != Kind::text || module->kind != Kind::text) {
                    throw FormatError(opcode_position_, "a class whose name is no text");
                }
                return push_global(module->text(), name->text(), module->position);
            }
            case opcode::binpersid: {
                PickleNode* id = pop();
                if (id->kind != Kind::tuple) {
                    throw FormatError(opcode_position_, "a persistent id that is no tuple");
                }
                return push_items(Kind::storage, id->items());
            }
            case opcode::newobj_ex:
                pop();
                return call();
            case opcode::reduce:
            case opcode::newobj:
                return call();
            case opcode::build:
                return build();
            default:
                return false;
        }
    }

    bool push_foreign(std::string_view module, std::string_view name, std::uint64_t position) {
        if (!rules_.foreign_allowed) {
            throw FormatError(position,
                              fmt::format("class {}.{}, which is not opened", module, name));
        }
        stack_.push_back(make(Kind::foreign, fmt::format("{}.{}", module, name), position));
        return true;
    }

    bool push_global(std::string_view module, std::string_view name, std::uint64_t position) {
        if (module.size() + name.size() > longest_name) {
            throw FormatError(position, "a class name that is too long");
        }
        std::string full = fmt::format("{} {}", module, name);
        const auto& allowed = rules_.allowed_globals;
        if (std::find(allowed.begin(), allowed.end(), full) == allowed.end()) {
            return push_foreign(module, name, position);
        }
        stack_.push_back(make(Kind::global, std::move(full), position));
        return true;
    }

    bool call() {
        const NodeRef arguments = pop();
        PickleNode* callable = pop();
        if (callable->kind == Kind::foreign) {
            stack_.push_back(callable);
            return true;
        }
        if (callable->kind != Kind::global || arguments->kind != Kind::tuple) {
            throw FormatError(opcode_position_, "a call of something that is no class or function");
        }
        if (callable->is_global("collections OrderedDict")) {
            if (!arguments->items().empty()) {
                throw FormatError(opcode_position_, "an OrderedDict made with arguments");
            }
            return push_items(Kind::ordered_dict, {});
        }
        if (callable->is_global("__builtin__ bytes") && arguments->items().empty()) {
            return push(Kind::bytes, std::string());
        }
        if (callable->is_global("_codecs encode")) {
            return encode_latin1(*arguments);
        }
        return push_items(Kind::object, {callable, arguments});
    }

    /// Protocol 2 has no bytes: Python writes them as _codecs.encode(text, "latin1").
    bool encode_latin1(const PickleNode& arguments) {
        const auto& items = arguments.items();
        if (items.size() != 2 || items[0]->kind != Kind::text || items[1]->kind != Kind::text ||
            items[1]->text() != "latin1") {
            throw FormatError(opcode_position_, "a call of _codecs.encode that is not for latin1");
        }
        std::string result;
        const std::string& text = items[0]->text();
        for (std::size_t i = 0; i < text.size(); ++i) {
            const auto c = static_cast<std::uint8_t>(text[i]);
            if (c < 0x80U) {
                result += text[i];
            } else if ((c == 0xc2U || c == 0xc3U) && i + 1 < text.size()) {
                ++i;
                const auto low = static_cast<std::uint8_t>(text[i]) & 0x3fU;
                result += static_cast<char>(((c & 0x03U) << 6U) | low);
            } else {
                throw FormatError(opcode_position_, "bytes written with a character beyond latin1");
            }
        }
        return push(Kind::bytes, std::move(result));
    }

    bool build() {
        const NodeRef state = pop();
        PickleNode* target = top();
        if (target->kind == Kind::foreign) {
            return true;
        }
        if (target->kind != Kind::object || target->items().size() != 2) {
            throw FormatError(opcode_position_, "state for an object that takes none");
        }
        target->items().push_back(state);
        return true;
    }

    bool memo(std::uint8_t code) {
        switch (code) {
            case opcode::proto:
                if (const std::uint64_t version = take_number(1); version < 2 || version > 5) {
                    throw FormatError(opcode_position_, fmt::format("pickle protocol {}", version));
                }
                return true;
            case opcode::frame:
                take_number(8);
                return true;
            case opcode::memoize:
                memo_[memo_.size()] = top();
                return true;
            case opcode::binput:
                memo_[take_number(1)] = top();
                return true;
            case opcode::long_binput:
                memo_[take_number(4)] = top();
                return true;
            case opcode::binget:
                return get(take_number(1));
            case opcode::long_binget:
                return get(take_number(4));
            default:
                return false;
        }
    }

    bool get(std::uint64_t slot) {
        const auto found = memo_.find(slot);
        if (found == memo_.end()) {
            throw FormatError(opcode_position_, fmt::format("memo slot {}, which is empty", slot));
        }
        stack_.push_back(found->second);
        return true;
    }

    std::span<const std::byte> bytes_;
    const PickleRules& rules_;
    std::size_t position_ = 0;
    std::size_t opcode_position_ = 0;
    PickleGraph graph_;
    std::vector<PickleNode*> stack_;
    std::vector<std::size_t> marks_;
    std::unordered_map<std::uint64_t, PickleNode*> memo_;
};

}  // namespace

PickleGraph read_pickle(std::span<const std::byte> bytes, const PickleRules& rules) {
    return PickleParser(bytes, rules).parse();
}

std::string decimal_of(std::string_view little_endian) {
    std::vector<std::uint8_t> magnitude(little_endian.begin(), little_endian.end());
    const bool negative = !magnitude.empty() && (magnitude.back() & 0x80U) != 0;
    if (negative) {
        unsigned carry = 1;
        for (std::uint8_t& byte : magnitude) {
            const unsigned value = (static_cast<unsigned>(byte) ^ 0xffU) + carry;
            byte = static_cast<std::uint8_t>(value & 0xffU);
            carry = value >> 8U;
        }
    }
    constexpr std::uint64_t billion = 1'000'000'000;
    std::string digits;
    while (!magnitude.empty()) {
        std::uint64_t remainder = 0;
        for (std::size_t i = magnitude.size(); i-- > 0;) {
            const std::uint64_t value = remainder * 256U + magnitude[i];
            magnitude[i] = static_cast<std::uint8_t>(value / billion);
            remainder = value % billion;
        }
        for (int digit = 0; digit < 9; ++digit) {
            digits += static_cast<char>('0' + remainder % 10U);
            remainder /= 10U;
        }
        while (!magnitude.empty() && magnitude.back() == 0) {
            magnitude.pop_back();
        }
    }
    while (digits.size() > 1 && digits.back() == '0') {
        digits.pop_back();
    }
    if (negative && digits != "0") {
        digits += '-';
    }
    std::reverse(digits.begin(), digits.end());
    return digits.empty() ? "0" : digits;
}

}  // namespace swaplab::harness
