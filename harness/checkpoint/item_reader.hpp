#pragma once

/// Reading one item: the zip archive that torch.save makes of one tensor or one Python object.

#include "checkpoint/zip_reader.hpp"

#include "swaplab/optim/sharding.hpp"
#include "swaplab/optim/value.hpp"
#include "swaplab/sim/dtype.hpp"

#include <cstdint>

namespace swaplab::harness {

/// What data.pkl says about a tensor, checked against its storage record.
struct StoredTensor {
    sim::DType dtype = sim::DType::float32;
    optim::Shape shape;
    optim::Shape strides;             ///< in elements
    std::uint64_t first_element = 0;  ///< of the tensor, in its storage, in elements
    std::uint64_t record_offset = 0;  ///< of the storage's bytes, in the item
    std::uint64_t record_bytes = 0;
    std::uint32_t record_crc32 = 0;
};

/// Reads the header of a tensor item. Throws FormatError.
[[nodiscard]] StoredTensor read_stored_tensor(ZipArchive& archive);

/// Reads a non-tensor item. Objects of foreign classes become Opaque. Throws FormatError.
[[nodiscard]] optim::Value read_stored_value(ZipArchive& archive);

/// True when element i of the row-major order is element i of the storage from first_element on.
[[nodiscard]] bool is_row_major(const StoredTensor& tensor);

}  // namespace swaplab::harness
