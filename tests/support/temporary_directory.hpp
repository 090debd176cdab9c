#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace swaplab::tests {

/// An empty directory of its own that goes away with everything in it.
class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "swaplab-XXXXXX").string();
        path_ = ::mkdtemp(name.data()) == nullptr ? "" : name;
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

  private:
    std::string path_;
};

}  // namespace swaplab::tests
