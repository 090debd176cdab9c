#pragma once

/// Making a new checkpoint directory appear all at once.

#include "swaplab/harness/storage.hpp"

#include <string>
#include <string_view>

namespace swaplab::harness {

/// Prepares `directory`.incomplete, and in the end gives it the name `directory`. Between prepare()
/// and the return of publish() the directory of that name stays as it is, whatever fails and
/// wherever power is lost; from then on it is the new one. Each rank has its own; rank 0's does the
/// work. Another protocol than this is a specimen.
class Publisher {
  public:
    Publisher(Storage& storage, std::string_view directory);
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;
    virtual ~Publisher() = default;

    [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
    /// Where files are written.
    [[nodiscard]] const std::string& incomplete() const noexcept { return incomplete_; }
    /// Whether a rank that fails to prepare leaves the others waiting for it.
    [[nodiscard]] virtual bool prepares_alone() const noexcept { return false; }

    /// Rank 0 removes what an earlier save left under the incomplete name and makes it anew. Throws
    /// StorageError when a directory of the final name holds anything but a checkpoint.
    virtual void prepare(int rank);
    /// The end of a file of any rank.
    virtual void finish(WritableFile& file);
    /// Of rank 0. `metadata` is written last into the incomplete directory; then names are changed.
    virtual void publish(std::string_view metadata);

  protected:
    [[nodiscard]] Storage& storage() const noexcept { return storage_; }
    void write_metadata(std::string_view metadata);
    std::string incomplete_;

  private:
    void require_replaceable();
    void swap_names();

    Storage& storage_;
    std::string directory_;
    bool replaces_ = false;
};

}  // namespace swaplab::harness
