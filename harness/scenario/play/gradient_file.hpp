#pragma once

/// Gradients from a file instead of the seeded ones.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// JSON with "gradients": a list, one object per training step, NAME -> bit patterns of fp32 in
/// hex, 8 digits per element, row-major (the format of resume_cases.json).
class GradientFile {
  public:
    /// Throws StorageError when it cannot be read, ArgumentError when it is something else.
    explicit GradientFile(const std::string& path);

    /// Of the whole tensor; `training_step` counts from 1. Throws ArgumentError when the file has
    /// none, or another number of elements.
    [[nodiscard]] const std::vector<float>& at(std::int64_t training_step, const std::string& name,
                                               std::int64_t elements) const;

  private:
    std::string path_;
    std::vector<std::map<std::string, std::vector<float>>> steps_;
};

}  // namespace swaplab::harness::scenario
