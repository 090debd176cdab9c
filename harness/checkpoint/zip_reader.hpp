#pragma once

/// Reading the zip archive that holds one item.

#include "checkpoint/format_error.hpp"

#include "swaplab/harness/storage.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::harness {

/// One stored (never compressed) file of an archive.
struct ZipRecord {
    std::string name;  ///< without the archive's folder: "data.pkl", "data/0"
    std::uint64_t bytes = 0;
    std::uint32_t crc32 = 0;
    std::uint64_t header_offset = 0;  ///< of the local header, in the archive
};

/// The archive in bytes [offset, offset + length) of a file, which must outlive it. Reads its first
/// and last bytes once; records in any order, any folder name, zip64, data descriptors, bytes after
/// the end. Throws FormatError (positions in the archive), StorageError.
class ZipArchive {
  public:
    ZipArchive(ReadableFile& file, std::uint64_t offset_bytes, std::uint64_t length_bytes);

    /// nullptr when there is none of that name.
    [[nodiscard]] const ZipRecord* find(std::string_view name) const noexcept;
    /// Like find(), throwing.
    [[nodiscard]] const ZipRecord& require(std::string_view name) const;
    /// Where the record's bytes begin, in the archive, after checking its local header.
    [[nodiscard]] std::uint64_t payload_offset(const ZipRecord& record);
    /// The whole record, CRC verified. Refuses more than `limit_bytes`.
    [[nodiscard]] std::vector<std::byte> read(const ZipRecord& record, std::uint64_t limit_bytes);
    /// Bytes of the archive from `offset_bytes` on.
    void read_at(std::uint64_t offset_bytes, std::span<std::byte> out);

  private:
    struct Directory {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
        std::uint64_t entries = 0;
        std::uint64_t end = 0;  ///< where the records after the directory begin
    };
    [[nodiscard]] std::vector<std::byte> bytes_at(std::uint64_t offset, std::uint64_t count);
    [[nodiscard]] std::uint64_t find_end();
    [[nodiscard]] Directory find_directory();
    void read_directory(const Directory& directory);

    ReadableFile& file_;
    std::uint64_t offset_;
    std::uint64_t length_;
    std::vector<std::byte> head_;
    std::vector<std::byte> tail_;
    std::string folder_;
    std::vector<ZipRecord> records_;
};

}  // namespace swaplab::harness
