#include "checkpoint/storage_error.hpp"

#include "checkpoint/paths.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

namespace swaplab::harness {
namespace {

constexpr std::size_t names_shown = 8;

std::string directory_text(const std::string& path) {
    if (path == ".") {
        return "the current directory";
    }
    return path.back() == '/' ? path : path + "/";
}

std::string holds_text(const std::vector<DirectoryEntry>& entries) {
    if (entries.empty()) {
        return "is empty";
    }
    std::string text = "holds ";
    for (std::size_t i = 0; i < entries.size() && i < names_shown; ++i) {
        text += fmt::format("{}{}", i == 0 ? "" : ", ", entries[i].name);
    }
    if (entries.size() > names_shown) {
        text += fmt::format(" and {} more", entries.size() - names_shown);
    }
    return text;
}

bool is_listable(Storage& storage, const std::string& path, std::vector<DirectoryEntry>& entries) {
    try {
        if (!storage.exists(path)) {
            return false;
        }
        entries = storage.list(path);
        return true;
    } catch (const StorageError&) {
        return false;
    }
}

}  // namespace

StorageError storage_error(std::string_view operation, const std::string& path,
                           std::string_view reason, const std::string& text) {
    return StorageError(
        text,
        {{"operation", std::string(operation)}, {"file", path}, {"reason", std::string(reason)}});
}

StorageError missing_error(Storage& storage, std::string_view operation, const std::string& path) {
    std::string text = fmt::format("{} does not exist", path);
    std::vector<DirectoryEntry> entries;
    std::string above = parent_of(path);
    while (!is_listable(storage, above, entries)) {
        if (above == "." || above == "/") {
            return storage_error(operation, path, "does not exist", text);
        }
        above = parent_of(above);
    }
    text += fmt::format("; {} {}", directory_text(above), holds_text(entries));
    return storage_error(operation, path, "does not exist", text);
}

StorageError short_file_error(const std::string& path, std::uint64_t offset_bytes,
                              std::uint64_t wanted_bytes, std::uint64_t size_bytes) {
    return storage_error(
        "read", path, "ends early",
        fmt::format("{} ends at {}, {} at offset {} were asked for: the file was cut, copy it "
                    "again from its source",
                    path, sim::format_bytes(size_bytes), sim::format_bytes(wanted_bytes),
                    sim::with_thousands(offset_bytes)));
}

std::string field_of(const sim::Error& error, std::string_view name) {
    for (const sim::ErrorField& field : error.fields()) {
        if (field.name == name) {
            return field.value;
        }
    }
    return {};
}

}  // namespace swaplab::harness
