#pragma once

/// The memory of one simulated device: one memfd, mapped twice at a constant distance.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace swaplab::sim {

/// A range of addresses that a program may hold but not touch (PROT_NONE), and their alias, which
/// the executor reads and writes. Costs nothing until the alias is touched. Pages are kept for the
/// next arena of the process: a fresh large mapping is slow to touch.
class Arena {
  public:
    /// At least `bytes` bytes. Throws DeviceError when the system gives no memory.
    explicit Arena(std::uint64_t bytes);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    [[nodiscard]] std::uint64_t bytes() const noexcept;
    /// The first address handed to users.
    [[nodiscard]] std::byte* user() const noexcept;
    /// What to add to a user address to get its alias.
    [[nodiscard]] std::ptrdiff_t alias_distance_bytes() const noexcept;
    [[nodiscard]] bool contains(const void* pointer) const noexcept;

  private:
    struct Mapping;
    class Pool;
    std::unique_ptr<Mapping> mapping_;
};

}  // namespace swaplab::sim
