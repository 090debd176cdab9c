#include "checkpoint/zip_reader.hpp"

#include "checkpoint/crc32.hpp"
#include "checkpoint/zip_format.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness {
namespace {

constexpr std::uint64_t head_bytes = 1024;
constexpr std::uint64_t tail_bytes = 1024;
constexpr std::uint64_t largest_directory_bytes = std::uint64_t{64} << 20U;

/// Fields one after the other; the caller has checked that they are there.
class Fields {
  public:
    explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}

    std::uint64_t next(std::size_t width) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < width; ++i) {
            value |= std::to_integer<std::uint64_t>(bytes_[position_ + i]) << (8 * i);
        }
        position_ += width;
        return value;
    }
    void skip(std::size_t count) { position_ += count; }
    std::string text(std::size_t count) {
        std::string result(count, '\0');
        for (std::size_t i = 0; i < count; ++i) {
            result[i] = static_cast<char>(bytes_[position_ + i]);
        }
        position_ += count;
        return result;
    }
    [[nodiscard]] std::size_t left() const { return bytes_.size() - position_; }
    [[nodiscard]] std::size_t position() const { return position_; }

  private:
    std::span<const std::byte> bytes_;
    std::size_t position_ = 0;
};

/// Replaces saturated sizes and offset by those of the zip64 extra field.
void apply_extra(Fields extra, std::uint64_t position, std::uint64_t& uncompressed,
                 std::uint64_t& compressed, std::uint64_t& header_offset) {
    while (extra.left() > 0) {
        if (extra.left() < 4) {
            throw FormatError(position, "an extra field that is cut short");
        }
        const std::uint64_t id = extra.next(2);
        const std::uint64_t length = extra.next(2);
        if (length > extra.left()) {
            throw FormatError(position, "an extra field that is longer than its header says");
        }
        if (id != zip::extra_zip64) {
            extra.skip(length);
            continue;
        }
        std::size_t used = 0;
        for (std::uint64_t* value : {&uncompressed, &compressed, &header_offset}) {
            if (*value == zip::saturated32 && used + 8 <= length) {
                *value = extra.next(8);
                used += 8;
            }
        }
        extra.skip(length - used);
    }
}

}  // namespace

ZipArchive::ZipArchive(ReadableFile& file, std::uint64_t offset_bytes, std::uint64_t length_bytes)
    : file_(file), offset_(offset_bytes), length_(length_bytes) {
    const std::uint64_t size = file.size();
    if (offset_ > size || length_ > size - offset_) {
        throw FormatError(0, fmt::format("a file of {} bytes, the item needs bytes {} to {}", size,
                                         offset_, offset_ + length_));
    }
    if (length_ < zip::end_bytes) {
        throw FormatError(0, fmt::format("{} bytes, too few for a zip archive", length_));
    }
    head_.resize(std::min(length_, head_bytes));
    file_.read(offset_, head_);
    tail_.resize(std::min(length_, tail_bytes));
    file_.read(offset_ + length_ - tail_.size(), tail_);
    read_directory(find_directory());
}

void ZipArchive::read_at(std::uint64_t offset, std::span<std::byte> out) {
    if (offset > length_ || out.size() > length_ - offset) {
        throw FormatError(offset, fmt::format("the end of the item ({} bytes wanted)", out.size()));
    }
    const std::uint64_t tail_begin = length_ - tail_.size();
    if (offset + out.size() <= head_.size()) {
        std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    } else if (offset >= tail_begin) {
        std::copy_n(tail_.begin() + static_cast<std::ptrdiff_t>(offset - tail_begin), out.size(),
                    out.begin());
    } else {
        file_.read(offset_ + offset, out);
    }
}

std::vector<std::byte> ZipArchive::bytes_at(std::uint64_t offset, std::uint64_t count) {
    if (offset > length_ || count > length_ - offset) {
        throw FormatError(offset, fmt::format("the end of the item ({} bytes wanted)", count));
    }
    std::vector<std::byte> bytes(count);
    read_at(offset, bytes);
    return bytes;
}

std::uint64_t ZipArchive::find_end() {
    const std::uint64_t searched = std::min(length_, zip::end_bytes + zip::longest_comment);
    const std::vector<std::byte> bytes =
        searched <= tail_.size() ? tail_ : bytes_at(length_ - searched, searched);
    for (std::size_t i = bytes.size() - zip::end_bytes + 1; i-- > 0;) {
        if (Fields(std::span(bytes).subspan(i, 4)).next(4) == zip::end_signature) {
            return length_ - bytes.size() + i;
        }
    }
    throw FormatError(length_, "no end of a zip directory: the item is cut or overwritten");
}

ZipArchive::Directory ZipArchive::find_directory() {
    const std::uint64_t end = find_end();
    const std::vector<std::byte> bytes = bytes_at(end, zip::end_bytes);
    Fields fields(bytes);
    fields.skip(8);
    fields.skip(2);
    Directory directory;
    directory.end = end;
    directory.entries = fields.next(2);
    directory.bytes = fields.next(4);
    directory.offset = fields.next(4);
    if (end >= zip::locator64_bytes) {
        const std::vector<std::byte> locator =
            bytes_at(end - zip::locator64_bytes, zip::locator64_bytes);
        Fields locator_fields(locator);
        if (locator_fields.next(4) == zip::locator64_signature) {
            locator_fields.skip(4);
            const std::uint64_t end64 = locator_fields.next(8);
            const std::vector<std::byte> end64_record = bytes_at(end64, zip::end64_bytes);
            Fields end64_fields(end64_record);
            if (end64_fields.next(4) != zip::end64_signature) {
                throw FormatError(end64, "no zip64 end record where the locator points");
            }
            end64_fields.skip(28);
            directory.end = end64;
            directory.entries = end64_fields.next(8);
            directory.bytes = end64_fields.next(8);
            directory.offset = end64_fields.next(8);
        }
    }
    if (directory.bytes > directory.end || directory.offset != directory.end - directory.bytes ||
        directory.entries > directory.bytes / zip::central_bytes ||
        directory.bytes > largest_directory_bytes) {
        throw FormatError(end, "a zip directory whose place and size do not fit the item");
    }
    return directory;
}

void ZipArchive::read_directory(const Directory& directory) {
    const std::vector<std::byte> bytes = bytes_at(directory.offset, directory.bytes);
    Fields fields(bytes);
    for (std::uint64_t i = 0; i < directory.entries; ++i) {
        const std::uint64_t position = directory.offset + fields.position();
        if (fields.left() < zip::central_bytes || fields.next(4) != zip::central_signature) {
            throw FormatError(position, "no zip directory entry where one should be");
        }
        fields.skip(6);
        const std::uint64_t method = fields.next(2);
        fields.skip(4);
        ZipRecord record;
        record.crc32 = static_cast<std::uint32_t>(fields.next(4));
        std::uint64_t compressed = fields.next(4);
        record.bytes = fields.next(4);
        const std::uint64_t name_length = fields.next(2);
        const std::uint64_t extra_length = fields.next(2);
        const std::uint64_t comment_length = fields.next(2);
        fields.skip(8);
        record.header_offset = fields.next(4);
        if (name_length + extra_length + comment_length > fields.left()) {
            throw FormatError(position, "a zip directory entry that is cut short");
        }
        record.name = fields.text(name_length);
        apply_extra(Fields(std::span(bytes).subspan(fields.position(), extra_length)), position,
                    record.bytes, compressed, record.header_offset);
        fields.skip(extra_length + comment_length);
        if (method != 0 || compressed != record.bytes) {
            throw FormatError(position,
                              fmt::format("record {} in compressed form (method {}), only "
                                          "stored records are read",
                                          record.name, method));
        }
        if (record.header_offset > directory.offset ||
            record.bytes > directory.offset - record.header_offset) {
            throw FormatError(
                position, fmt::format("record {} of {} bytes at {}, outside the item", record.name,
                                      record.bytes, record.header_offset));
        }
        records_.push_back(std::move(record));
    }
    if (!records_.empty()) {
        folder_ = records_.front().name.substr(0, records_.front().name.find('/') + 1);
    }
    for (ZipRecord& record : records_) {
        if (record.name.starts_with(folder_)) {
            record.name.erase(0, folder_.size());
        }
    }
}

const ZipRecord* ZipArchive::find(std::string_view name) const noexcept {
    for (const ZipRecord& record : records_) {
        if (record.name == name) {
            return &record;
        }
    }
    return nullptr;
}

const ZipRecord& ZipArchive::require(std::string_view name) const {
    const ZipRecord* record = find(name);
    if (record == nullptr) {
        throw FormatError(0, fmt::format("an archive without record {}", name));
    }
    return *record;
}

std::uint64_t ZipArchive::payload_offset(const ZipRecord& record) {
    const std::uint64_t begin = record.header_offset;
    const std::vector<std::byte> header = bytes_at(begin, zip::local_bytes);
    Fields fields(header);
    if (fields.next(4) != zip::local_signature) {
        throw FormatError(begin, fmt::format("no local header of record {}", record.name));
    }
    fields.skip(22);
    const std::uint64_t name_length = fields.next(2);
    const std::uint64_t extra_length = fields.next(2);
    const std::vector<std::byte> rest =
        bytes_at(begin + zip::local_bytes, name_length + extra_length);
    Fields rest_fields(rest);
    const std::string name = rest_fields.text(name_length);
    if (name != folder_ + record.name) {
        throw FormatError(begin, fmt::format("local header of {} where the directory says {}{}",
                                             name, folder_, record.name));
    }
    std::uint64_t ignored = 0;
    apply_extra(Fields(std::span(rest).subspan(name_length)), begin, ignored, ignored, ignored);
    const std::uint64_t payload = begin + zip::local_bytes + name_length + extra_length;
    if (payload > length_ || record.bytes > length_ - payload) {
        throw FormatError(begin, fmt::format("the end of the item inside record {}", record.name));
    }
    return payload;
}

std::vector<std::byte> ZipArchive::read(const ZipRecord& record, std::uint64_t limit_bytes) {
    if (record.bytes > limit_bytes) {
        throw FormatError(record.header_offset,
                          fmt::format("record {} of {} bytes, at most {} make "
                                      "sense",
                                      record.name, record.bytes, limit_bytes));
    }
    const std::uint64_t begin = payload_offset(record);
    std::vector<std::byte> bytes = bytes_at(begin, record.bytes);
    if (crc32_update(0, bytes) != record.crc32) {
        throw FormatError(
            begin, fmt::format("record {} with another checksum than was written", record.name));
    }
    return bytes;
}

}  // namespace swaplab::harness
