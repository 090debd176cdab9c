#pragma once

/// What the format readers throw; callers that know file and key make CheckpointCorrupt of it.

#include <cstdint>
#include <stdexcept>
#include <string>

namespace swaplab::harness {

/// Bytes that break their format's rules. `position` counts from the start of what was read (an
/// item, a pickle).
class FormatError : public std::runtime_error {
  public:
    FormatError(std::uint64_t position, std::string found)
        : std::runtime_error(found), position_(position), found_(std::move(found)) {}

    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
    [[nodiscard]] const std::string& found() const noexcept { return found_; }

  private:
    std::uint64_t position_;
    std::string found_;
};

}  // namespace swaplab::harness
