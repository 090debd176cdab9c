#pragma once

/// Errors on their way between ranks that share no exception.

#include "swaplab/sim/error.hpp"

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

namespace swaplab::sim {

/// At most `bytes_max` bytes (at least 256): kind, text, fields and the report of an
/// OutOfDeviceMemory. What does not fit is left out from the end of the fields, then of the text.
[[nodiscard]] std::string encode_error(const std::exception_ptr& error, std::size_t bytes_max);

/// An Error of the same kind with the same text and fields; a std::runtime_error for anything else.
[[nodiscard]] std::exception_ptr decode_error(std::string_view encoded);

/// Any kind but out_of_memory, which has a class of its own and becomes a DeviceError here.
[[nodiscard]] std::exception_ptr make_error(ErrorKind kind, const std::string& text,
                                            ErrorFields fields);

}  // namespace swaplab::sim
