#include "checkpoint/pickle_writer.hpp"

#include "checkpoint/pickle_opcode.hpp"

#include "swaplab/sim/assert.hpp"

#include <bit>
#include <vector>

namespace swaplab::harness {
namespace {

/// Little-endian two's complement of minimal length, as LONG1 wants it.
std::string little_endian_of(std::string_view decimal) {
    const bool negative = decimal.starts_with('-');
    std::vector<std::uint8_t> magnitude;
    for (const char c : decimal.substr(negative ? 1 : 0)) {
        unsigned carry = static_cast<unsigned>(c - '0');
        for (std::uint8_t& byte : magnitude) {
            carry += byte * 10U;
            byte = static_cast<std::uint8_t>(carry & 0xffU);
            carry >>= 8U;
        }
        if (carry != 0) {
            magnitude.push_back(static_cast<std::uint8_t>(carry));
        }
    }
    magnitude.push_back(0);
    if (negative) {
        unsigned carry = 1;
        for (std::uint8_t& byte : magnitude) {
            carry += static_cast<unsigned>(byte) ^ 0xffU;
            byte = static_cast<std::uint8_t>(carry & 0xffU);
            carry >>= 8U;
        }
    }
    const unsigned fill = negative ? 0xffU : 0U;
    while (magnitude.size() > 1 && magnitude.back() == fill &&
           (magnitude[magnitude.size() - 2] & 0x80U) == (fill & 0x80U)) {
        magnitude.pop_back();
    }
    return {magnitude.begin(), magnitude.end()};
}

std::string utf8_of_latin1(std::string_view latin1) {
    std::string result;
    for (const char c : latin1) {
        const auto byte = static_cast<std::uint8_t>(c);
        if (byte < 0x80U) {
            result += c;
        } else {
            result += static_cast<char>(0xc0U | (byte >> 6U));
            result += static_cast<char>(0x80U | (byte & 0x3fU));
        }
    }
    return result;
}

}  // namespace

PickleWriter::PickleWriter(int protocol) : protocol_(protocol) {
    op(opcode::proto);
    op(static_cast<std::uint8_t>(protocol));
}

void PickleWriter::number(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) {
        bytes_ += static_cast<char>((value >> (8 * i)) & 0xffU);
    }
}

void PickleWriter::integer(std::int64_t value) {
    if (value >= 0 && value < 0x100) {
        op(opcode::binint1);
        number(static_cast<std::uint64_t>(value), 1);
    } else if (value >= 0 && value < 0x10000) {
        op(opcode::binint2);
        number(static_cast<std::uint64_t>(value), 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        op(opcode::binint);
        number(static_cast<std::uint64_t>(value), 4);
    } else {
        big_integer(std::to_string(value));
    }
}

void PickleWriter::big_integer(std::string_view decimal) {
    const std::string raw = little_endian_of(decimal);
    if (raw.size() < 0x100) {
        op(opcode::long1);
        number(raw.size(), 1);
    } else {
        op(opcode::long4);
        number(raw.size(), 4);
    }
    bytes_ += raw;
}

void PickleWriter::floating(double value) {
    op(opcode::binfloat);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) {
        bytes_ += static_cast<char>((bits >> shift) & 0xffU);
    }
}

void PickleWriter::boolean(bool value) {
    op(value ? opcode::newtrue : opcode::newfalse);
}

void PickleWriter::none() {
    op(opcode::none);
}

void PickleWriter::text_bytes(std::string_view value) {
    if (protocol_ >= 4 && value.size() < 0x100) {
        op(opcode::short_binunicode);
        number(value.size(), 1);
    } else {
        SWAPLAB_ASSERT(value.size() <= UINT32_MAX, "text of 4 GiB or more");
        op(opcode::binunicode);
        number(value.size(), 4);
    }
    bytes_ += value;
}

void PickleWriter::text(std::string_view value) {
    text_bytes(value);
    memoize();
}

void PickleWriter::bytes(std::string_view value) {
    SWAPLAB_ASSERT(protocol_ == 2, "bytes are only written into items");
    if (value.empty()) {
        global("__builtin__", "bytes");
        op(opcode::empty_tuple);
        op(opcode::reduce);
        memoize();
        return;
    }
    global("_codecs", "encode");
    text(utf8_of_latin1(value));
    interned("latin1");
    op(opcode::tuple2);
    memoize();
    op(opcode::reduce);
    memoize();
}

bool PickleWriter::fetch(const std::string& key) {
    const auto found = slots_.find(key);
    if (found == slots_.end()) {
        return false;
    }
    const bool is_short = found->second < 0x100;
    op(is_short ? opcode::binget : opcode::long_binget);
    number(found->second, is_short ? 1 : 4);
    return true;
}

void PickleWriter::remember(const std::string& key) {
    slots_[key] = next_slot_;
    if (protocol_ == 2) {
        memoize();
        return;
    }
    op(opcode::memoize);
    ++next_slot_;
}

void PickleWriter::global(std::string_view module, std::string_view name) {
    const std::string key = std::string(module) + '\n' + std::string(name);
    if (fetch(key)) {
        return;
    }
    if (protocol_ == 2) {
        op(opcode::global);
        bytes_.append(module).append("\n").append(name).append("\n");
    } else {
        interned(module);
        interned(name);
        op(opcode::stack_global);
    }
    remember(key);
}

void PickleWriter::interned(std::string_view value) {
    const std::string key(value);
    if (!fetch(key)) {
        text_bytes(value);
        remember(key);
    }
}

void PickleWriter::memoize() {
    if (protocol_ != 2) {
        return;
    }
    const bool is_short = next_slot_ < 0x100;
    op(is_short ? opcode::binput : opcode::long_binput);
    number(next_slot_, is_short ? 1 : 4);
    ++next_slot_;
}

std::string PickleWriter::finish() && {
    op(opcode::stop);
    return std::move(bytes_);
}

}  // namespace swaplab::harness
