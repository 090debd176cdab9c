#include "checkpoint/zip_writer.hpp"

#include "checkpoint/crc32.hpp"
#include "checkpoint/zip_format.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

namespace swaplab::harness {
namespace {

constexpr std::uint64_t alignment = 64;
constexpr std::uint64_t flag_utf8 = 0x0800;
constexpr std::uint64_t flag_descriptor = 0x0008;
constexpr std::string_view folder = "archive/";

bool is_large(std::uint64_t value) {
    return value >= zip::saturated32;
}

std::uint64_t capped(std::uint64_t value) {
    return is_large(value) ? zip::saturated32 : value;
}

/// The zip64 extra field of a record, empty when neither number needs it.
std::string zip64_extra(std::uint64_t bytes, std::uint64_t header_offset) {
    if (!is_large(bytes) && !is_large(header_offset)) {
        return {};
    }
    std::string extra;
    zip::put(extra, zip::extra_zip64, 2);
    zip::put(extra, (is_large(bytes) ? 16U : 0U) + (is_large(header_offset) ? 8U : 0U), 2);
    if (is_large(bytes)) {
        zip::put(extra, bytes, 8);
        zip::put(extra, bytes, 8);
    }
    if (is_large(header_offset)) {
        zip::put(extra, header_offset, 8);
    }
    return extra;
}

/// c10::hash_combine.
std::uint64_t combine(std::uint64_t seed, std::uint64_t value) {
    return seed ^ (value + 0x9e3779b9U + (seed << 6U) + (seed >> 2U));
}

}  // namespace

ZipWriter::ZipWriter(BlockWriter& out) : out_(out), start_(out.position()) {}

void ZipWriter::record(std::string_view name, std::string_view bytes) {
    begin(name, bytes.size());
    payload(std::as_bytes(std::span(bytes)));
    out_.append(bytes);
    end();
}

void ZipWriter::begin(std::string_view name, std::uint64_t bytes) {
    Entry entry;
    entry.name = std::string(folder).append(name);
    entry.bytes = bytes;
    entry.header_offset = position();
    std::string extra = zip64_extra(bytes, entry.header_offset);
    const std::uint64_t unpadded =
        entry.header_offset + zip::local_bytes + entry.name.size() + extra.size() + 4;
    const std::uint64_t padding = sim::round_up(unpadded, alignment) - unpadded;
    zip::put(extra, zip::extra_padding, 2);
    zip::put(extra, padding, 2);
    extra.append(padding, 'Z');

    std::string header;
    zip::put(header, zip::local_signature, 4);
    zip::put(header, 0, 2);
    zip::put(header, flag_utf8 | (bytes == 0 ? 0 : flag_descriptor), 2);
    header.append(18, '\0');  // method, time, date; checksum and sizes: see the descriptor
    zip::put(header, entry.name.size(), 2);
    zip::put(header, extra.size(), 2);
    out_.append(header + entry.name + extra);
    entries_.push_back(std::move(entry));
}

void ZipWriter::payload(std::span<const std::byte> bytes) {
    entries_.back().crc32 = crc32_update(entries_.back().crc32, bytes);
}

void ZipWriter::end() {
    const Entry& entry = entries_.back();
    if (entry.bytes == 0) {
        return;
    }
    checksums_fingerprint_ = combine(checksums_fingerprint_, entry.crc32);
    const int width = is_large(entry.bytes) || is_large(entry.header_offset) ? 8 : 4;
    std::string descriptor;
    zip::put(descriptor, zip::descriptor_signature, 4);
    zip::put(descriptor, entry.crc32, 4);
    zip::put(descriptor, entry.bytes, width);
    zip::put(descriptor, entry.bytes, width);
    out_.append(descriptor);
}

void ZipWriter::finish(std::string_view names_fingerprint) {
    record("version", "3\n");
    record(".data/serialization_id",
           fmt::format("{}{:020d}", names_fingerprint, checksums_fingerprint_));
    write_directory();
}

void ZipWriter::write_directory() {
    const std::uint64_t begin = position();
    for (const Entry& entry : entries_) {
        const std::string extra = zip64_extra(entry.bytes, entry.header_offset);
        std::string record;
        zip::put(record, zip::central_signature, 4);
        zip::put(record, 0, 4);
        zip::put(record, flag_utf8 | (entry.bytes == 0 ? 0 : flag_descriptor), 2);
        zip::put(record, 0, 6);
        zip::put(record, entry.crc32, 4);
        zip::put(record, capped(entry.bytes), 4);
        zip::put(record, capped(entry.bytes), 4);
        zip::put(record, entry.name.size(), 2);
        zip::put(record, extra.size(), 2);
        record.append(10, '\0');  // comment length, disk, attributes
        zip::put(record, capped(entry.header_offset), 4);
        record.append(entry.name).append(extra);
        out_.append(record);
    }
    const std::uint64_t end = position();
    std::string tail;
    zip::put(tail, zip::end64_signature, 4);
    zip::put(tail, zip::end64_bytes - 12, 8);
    zip::put(tail, 0x031e, 2);  // made by: unix, 3.0
    zip::put(tail, 0x002d, 2);  // needed: 4.5, zip64
    zip::put(tail, 0, 8);
    zip::put(tail, entries_.size(), 8);
    zip::put(tail, entries_.size(), 8);
    zip::put(tail, end - begin, 8);
    zip::put(tail, begin, 8);
    zip::put(tail, zip::locator64_signature, 4);
    zip::put(tail, 0, 4);
    zip::put(tail, end, 8);
    zip::put(tail, 1, 4);
    zip::put(tail, zip::end_signature, 4);
    zip::put(tail, 0, 4);
    zip::put(tail, entries_.size(), 2);
    zip::put(tail, entries_.size(), 2);
    zip::put(tail, capped(end - begin), 4);
    zip::put(tail, capped(begin), 4);
    zip::put(tail, 0, 2);
    out_.append(tail);
}

}  // namespace swaplab::harness
