#pragma once

/// Reference checkpoints in memory, to be inspected and damaged.

#include "inspect/analyse.hpp"
#include "inspect/inspect.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace swaplab::harness {

inline std::vector<std::byte> read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    return {bytes.begin(), bytes.end()};
}

/// tests/data/swap_adamw/checkpoints/NAME or tests/data/dcp/checkpoints/NAME/ckpt.
inline std::filesystem::path reference_path(const std::string& name) {
    const std::filesystem::path data = SWAPLAB_TEST_DATA;
    const auto swap = data / "swap_adamw/checkpoints" / name;
    return std::filesystem::exists(swap) ? swap : data / "dcp/checkpoints" / name / "ckpt";
}

/// A file system in memory with reference checkpoints as top-level directories.
class Memory {
  public:
    Memory& add(const std::string& name, const std::string& as = "") {
        const std::string directory = as.empty() ? name : as;
        storage_->make_directory(directory);
        for (const auto& file : std::filesystem::directory_iterator(reference_path(name))) {
            put(directory + "/" + file.path().filename().string(), read_file(file.path()));
        }
        return *this;
    }

    Memory& put(const std::string& path, const std::vector<std::byte>& bytes) {
        const auto file = storage_->create(path);
        file->append(bytes);
        file->close();
        return *this;
    }

    Memory& put(const std::string& path, const std::string& text) {
        const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
        return put(path, std::vector<std::byte>(bytes.begin(), bytes.end()));
    }

    [[nodiscard]] MemoryStorage& storage() { return *storage_; }
    [[nodiscard]] std::vector<std::byte>& bytes(const std::string& path) {
        return storage_->file_bytes(path);
    }

    [[nodiscard]] InspectReport report(const std::string& directory) {
        return inspect_directory(*storage_, directory, nullptr, false);
    }
    /// What `swaplab inspect` prints.
    [[nodiscard]] std::string text(const InspectOptions& options) {
        std::ostringstream out;
        exit_ = inspect_command(*storage_, options, out);
        return out.str();
    }
    /// Of the last text().
    [[nodiscard]] ExitCode exit() const { return exit_; }

  private:
    std::unique_ptr<MemoryStorage> storage_ = make_memory_storage();
    ExitCode exit_ = ExitCode::ok;
};

inline InspectOptions of(const std::string& directory) {
    InspectOptions options;
    options.directory = directory;
    return options;
}

inline std::set<std::string> codes(const InspectReport& report) {
    std::set<std::string> names;
    for (const Finding& finding : report.findings) {
        names.emplace(name_of(finding.code));
    }
    return names;
}

}  // namespace swaplab::harness
