#pragma once

/// Making a new checkpoint directory appear all at once.

#include "swaplab/harness/storage.hpp"

#include <string>
#include <string_view>

namespace swaplab::harness {

/// Prepares `directory`.incomplete, and in the end gives it the name `directory`. Between prepare()
/// and the return of publish() the directory of that name stays as it is, whatever fails and
/// wherever power is lost; from then on it is the new one. Used by one rank.
class Publisher {
  public:
    Publisher(Storage& storage, std::string_view directory);

    [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
    [[nodiscard]] const std::string& incomplete() const noexcept { return incomplete_; }

    /// Removes what an earlier save left under the incomplete name and makes it anew. Throws
    /// StorageError when a directory of the final name holds anything but a checkpoint.
    void prepare();
    /// `metadata` is written last into the incomplete directory; then names are changed.
    void publish(std::string_view metadata);

  private:
    void require_replaceable();
    void write_metadata(std::string_view metadata);
    void swap_names();

    Storage& storage_;
    std::string directory_;
    std::string incomplete_;
    bool replaces_ = false;
};

}  // namespace swaplab::harness
