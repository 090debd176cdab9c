#pragma once

/// Device profiles as data: JSON objects with a figure for each field of sim::DeviceProfile, under
/// its name. Only "host_memory_bytes_per_second" may be null: no limit. "sources" says of each
/// figure where it is from.

#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/timeline.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::harness {

struct SourcedProfile {
    sim::DeviceProfile profile;
    std::map<std::string, std::string> sources;  ///< by the name of a figure
};

/// Of the figures of a profile, in the order of the files.
[[nodiscard]] std::vector<std::string> figure_names();

/// What `json` says; "sources" may be missing, or leave figures out. Throws sim::ArgumentError with
/// fields operation, file, field, expected, found.
[[nodiscard]] SourcedProfile read_profile(std::string_view json, const std::string& file);
/// The text that read_profile() reads as the same, to the bit.
[[nodiscard]] std::string profile_json(const SourcedProfile& sourced);

/// Of the profiles that are part of this program, sorted.
[[nodiscard]] std::vector<std::string> profile_names();
/// One of them. Throws sim::ArgumentError for others.
[[nodiscard]] SourcedProfile profile_named(const std::string& name);
/// One of them, or the file of this path, which has a '/' or '.': no name does. Throws StorageError
/// for a file that cannot be read.
[[nodiscard]] SourcedProfile find_profile(Storage& storage, const std::string& name_or_file);

}  // namespace swaplab::harness
