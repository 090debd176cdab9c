#pragma once

/// Writing the zip archive that holds one item, byte for byte as PyTorch 2.8 does.

#include "checkpoint/block_writer.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::harness {

/// Writes stored records with payloads aligned to 64 bytes within the archive, then the directory.
/// Source: caffe2/serialize/inline_container.cc and miniz of PyTorch 2.8.
class ZipWriter {
  public:
    explicit ZipWriter(BlockWriter& out);

    /// A small record at once.
    void record(std::string_view name, std::string_view bytes);
    /// A record of exactly `bytes` bytes whose payload is then written through out() and reported
    /// with payload().
    void begin(std::string_view name, std::uint64_t bytes);
    void payload(std::span<const std::byte> bytes);
    void end();
    /// `version`, `.data/serialization_id` and the directory. The id is two fingerprints: of the
    /// record names, which is `names_fingerprint`, and of their checksums.
    void finish(std::string_view names_fingerprint);

    [[nodiscard]] BlockWriter& out() noexcept { return out_; }

  private:
    struct Entry {
        std::string name;
        std::uint64_t bytes = 0;
        std::uint32_t crc32 = 0;
        std::uint64_t header_offset = 0;
    };
    [[nodiscard]] std::uint64_t position() const { return out_.position() - start_; }
    void write_directory();

    BlockWriter& out_;
    std::uint64_t start_;
    std::vector<Entry> entries_;
    std::uint64_t checksums_fingerprint_ = 0;
};

}  // namespace swaplab::harness
