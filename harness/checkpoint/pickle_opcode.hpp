#pragma once

/// The pickle opcodes that are read or written. Source: CPython, Lib/pickletools.py.

#include <cstdint>

namespace swaplab::harness::opcode {

constexpr std::uint8_t mark = '(', stop = '.', reduce = 'R', build = 'b', none = 'N';
constexpr std::uint8_t newtrue = 0x88, newfalse = 0x89, binfloat = 'G';
constexpr std::uint8_t binint = 'J', binint1 = 'K', binint2 = 'M', long1 = 0x8a, long4 = 0x8b;
constexpr std::uint8_t binunicode = 'X', short_binunicode = 0x8c, binunicode8 = 0x8d;
constexpr std::uint8_t binstring = 'T', short_binstring = 'U';
constexpr std::uint8_t binbytes = 'B', short_binbytes = 'C', binbytes8 = 0x8e, bytearray8 = 0x96;
constexpr std::uint8_t global = 'c', stack_global = 0x93, binpersid = 'Q';
constexpr std::uint8_t empty_tuple = ')', tuple = 't', tuple1 = 0x85, tuple2 = 0x86, tuple3 = 0x87;
constexpr std::uint8_t empty_list = ']', append = 'a', appends = 'e';
constexpr std::uint8_t empty_dict = '}', setitem = 's', setitems = 'u';
constexpr std::uint8_t empty_set = 0x8f, additems = 0x90, frozenset = 0x91;
constexpr std::uint8_t newobj = 0x81, newobj_ex = 0x92;
constexpr std::uint8_t binget = 'h', long_binget = 'j', binput = 'q', long_binput = 'r';
constexpr std::uint8_t memoize = 0x94, proto = 0x80, frame = 0x95;
constexpr std::uint8_t pop = '0', pop_mark = '1', dup = '2';

}  // namespace swaplab::harness::opcode
