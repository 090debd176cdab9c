#pragma once

/// The .metadata file as bytes.

#include "checkpoint/format_error.hpp"

#include "swaplab/harness/dcp_metadata.hpp"

#include <span>
#include <string>

namespace swaplab::harness {

/// Reads any .metadata that PyTorch 2.1 to 2.15 write. Throws FormatError.
[[nodiscard]] Metadata decode_metadata(std::span<const std::byte> bytes);

/// Writes one that PyTorch 2.8 reads. Entries keep their order.
[[nodiscard]] std::string encode_metadata(const Metadata& metadata);

}  // namespace swaplab::harness
