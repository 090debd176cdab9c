#include "swap/live_moment.hpp"

#include "tensor/storage_range.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace swaplab::optim {
namespace {

class PiecewiseStorage : public TensorStorage {
  public:
    explicit PiecewiseStorage(std::vector<ArenaPiece> pieces) : pieces_(std::move(pieces)) {
        for (const ArenaPiece& piece : pieces_) {
            bytes_ += piece.bytes;
        }
    }

    sim::MemoryKind kind() const noexcept override { return sim::MemoryKind::pinned; }
    std::uint64_t bytes() const noexcept override { return bytes_; }
    std::byte* data() const noexcept override {
        return pieces_.empty() ? nullptr : pieces_[0].arena->data() + pieces_[0].arena_offset_bytes;
    }

    void read(std::uint64_t offset_bytes, std::span<std::byte> out) const override {
        for_each_part(offset_bytes, out.size(),
                      [&](const ArenaPiece& piece, std::uint64_t at, std::uint64_t from,
                          std::uint64_t count) {
                          const auto scope = piece.arena->read(at, count);
                          std::memmove(out.data() + from, scope.bytes().data(), count);
                      });
    }

    void write(std::uint64_t offset_bytes, std::span<const std::byte> in) override {
        for_each_part(offset_bytes, in.size(),
                      [&](const ArenaPiece& piece, std::uint64_t at, std::uint64_t from,
                          std::uint64_t count) {
                          const auto scope = piece.arena->write(at, count);
                          std::memmove(scope.bytes().data(), in.data() + from, count);
                      });
    }

  private:
    /// Calls use(piece, offset in its arena, offset in the range, bytes) for what lies in
    /// [offset_bytes, offset_bytes + size_bytes).
    template <class Use>
    void for_each_part(std::uint64_t offset_bytes, std::uint64_t size_bytes, const Use& use) const {
        check_range(offset_bytes, size_bytes, bytes_);
        const std::uint64_t end_bytes = offset_bytes + size_bytes;
        std::uint64_t begin = 0;
        for (const ArenaPiece& piece : pieces_) {
            const std::uint64_t first = std::max(begin, offset_bytes);
            const std::uint64_t last = std::min(begin + piece.bytes, end_bytes);
            if (first < last) {
                use(piece, piece.arena_offset_bytes + (first - begin), first - offset_bytes,
                    last - first);
            }
            begin += piece.bytes;
        }
    }

    std::vector<ArenaPiece> pieces_;
    std::uint64_t bytes_ = 0;
};

}  // namespace

std::shared_ptr<TensorStorage> make_piecewise_storage(std::vector<ArenaPiece> pieces) {
    return std::make_shared<PiecewiseStorage>(std::move(pieces));
}

}  // namespace swaplab::optim
