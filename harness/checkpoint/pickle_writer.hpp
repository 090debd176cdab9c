#pragma once

/// Writing Python pickles, opcode by opcode.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace swaplab::harness {

/// Builds one pickle in memory. Protocol 2 numbers memo slots and names classes as CPython's
/// pickler does for items; protocol 4 is the short form that .metadata is written in: no frames,
/// memo slots only for what interned() and global() repeat.
class PickleWriter {
  public:
    explicit PickleWriter(int protocol);

    void op(std::uint8_t opcode) { bytes_ += static_cast<char>(opcode); }
    void integer(std::int64_t value);
    /// An integer of any size from decimal digits with an optional '-'.
    void big_integer(std::string_view decimal);
    void floating(double value);
    void boolean(bool value);
    void none();
    void text(std::string_view value);
    /// Python bytes; in protocol 2 as a call of _codecs.encode.
    void bytes(std::string_view value);
    /// A class or function; a repeated one comes from the memo.
    void global(std::string_view module, std::string_view name);
    /// Like text(), from the memo when it was written before (protocol 4).
    void interned(std::string_view value);
    /// Gives the object on the stack the next memo slot (protocol 2).
    void memoize();

    /// Ends the pickle and returns it.
    [[nodiscard]] std::string finish() &&;

  private:
    void number(std::uint64_t value, int width);
    void text_bytes(std::string_view value);
    /// True when `key` was written before: its memo slot is then fetched.
    bool fetch(const std::string& key);
    void remember(const std::string& key);

    int protocol_;
    std::string bytes_;
    std::uint64_t next_slot_ = 0;
    std::map<std::string, std::uint64_t> slots_;
};

}  // namespace swaplab::harness
