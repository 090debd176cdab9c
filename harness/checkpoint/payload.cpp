#include "checkpoint/payload.hpp"

#include "checkpoint/crc32.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>

namespace swaplab::harness {
namespace {

using optim::Box;
using optim::Shape;

constexpr std::uint64_t window_bytes = std::uint64_t{64} << 10U;

/// Reads a record through a window, so that short runs do not become one system call each.
class RecordReader {
  public:
    RecordReader(ReadableFile& file, StoredPayload& payload)
        : file_(file),
          payload_(payload),
          capacity_(is_row_major(payload.tensor) ? window_bytes : payload.tensor.record_bytes) {}

    void read(std::uint64_t offset, std::span<std::byte> out) {
        if (out.size() >= capacity_) {
            read_file(offset, out);
            return;
        }
        if (offset < begin_ || offset + out.size() > begin_ + window_.size()) {
            const std::uint64_t size = payload_.tensor.record_bytes;
            begin_ = capacity_ == size ? 0 : offset;
            window_.resize(std::min(capacity_, size - begin_));
            read_file(begin_, window_);
        }
        std::copy_n(window_.begin() + static_cast<std::ptrdiff_t>(offset - begin_), out.size(),
                    out.begin());
    }

  private:
    void read_file(std::uint64_t offset, std::span<std::byte> out) {
        const StoredTensor& tensor = payload_.tensor;
        file_.read(payload_.item_offset + tensor.record_offset + offset, out);
        ChecksumProgress& progress = payload_.progress;
        if (offset == 0) {
            progress = {};
        }
        if (offset > progress.position || offset + out.size() <= progress.position) {
            return;
        }
        progress.crc32 = crc32_update(progress.crc32, out.subspan(progress.position - offset));
        progress.position = offset + out.size();
        if (progress.position == tensor.record_bytes && progress.crc32 != tensor.record_crc32 &&
            payload_.compared && !SWAPLAB_MUTANT("read.no_checksum")) {
            throw FormatError(tensor.record_offset,
                              "a tensor with another checksum than was written");
        }
    }

    ReadableFile& file_;
    StoredPayload& payload_;
    std::uint64_t capacity_;
    std::uint64_t begin_ = 0;
    std::vector<std::byte> window_;
};

/// The runs of consecutive elements that a chunk and a wanted box share, in row-major order.
class SharedRuns {
  public:
    SharedRuns(const StoredTensor& stored, const Box& chunk, const Box& wanted, const Box& shared)
        : stored_(stored), shared_(shared), wanted_strides_(shared.sizes.size()) {
        std::int64_t stride = 1;
        for (std::size_t dim = shared.sizes.size(); dim-- > 0;) {
            wanted_strides_[dim] = stride;
            stride *= wanted.sizes[dim];
            in_wanted_.push_back(shared.offsets[dim] - wanted.offsets[dim]);
            in_chunk_.push_back(shared.offsets[dim] - chunk.offsets[dim]);
        }
        std::reverse(in_wanted_.begin(), in_wanted_.end());
        std::reverse(in_chunk_.begin(), in_chunk_.end());
        outer_dims_ = shared.sizes.size();
        while (outer_dims_ > 0) {
            const std::size_t dim = outer_dims_ - 1;
            if (shared.sizes[dim] != 1 && stored.strides[dim] != run_) {
                break;
            }
            run_ *= shared.sizes[dim];
            outer_dims_ = dim;
            if (shared.sizes[dim] != wanted.sizes[dim]) {
                break;
            }
        }
        index_.resize(outer_dims_);
    }

    [[nodiscard]] std::int64_t run_elements() const { return run_; }

    /// Goes to the first run that ends after element `first` of the wanted box.
    void seek(std::int64_t first) {
        for (std::size_t dim = 0; dim < outer_dims_; ++dim) {
            const std::int64_t at = first / wanted_strides_[dim] - in_wanted_[dim];
            first %= wanted_strides_[dim];
            index_[dim] = std::clamp<std::int64_t>(at, 0, shared_.sizes[dim] - 1);
            if (at < 0) {
                return;
            }
            if (at >= shared_.sizes[dim]) {
                for (std::size_t later = dim + 1; later < outer_dims_; ++later) {
                    index_[later] = shared_.sizes[later] - 1;
                }
                next();
                return;
            }
        }
    }

    [[nodiscard]] bool done() const { return done_; }

    void next() {
        for (std::size_t dim = outer_dims_; dim-- > 0;) {
            if (++index_[dim] < shared_.sizes[dim]) {
                return;
            }
            index_[dim] = 0;
        }
        done_ = true;
    }

    [[nodiscard]] std::int64_t wanted_element() const {
        std::int64_t element = 0;
        for (std::size_t dim = 0; dim < shared_.sizes.size(); ++dim) {
            element += (in_wanted_[dim] + index(dim)) * wanted_strides_[dim];
        }
        return element;
    }

    [[nodiscard]] std::int64_t stored_element() const {
        auto element = static_cast<std::int64_t>(stored_.first_element);
        for (std::size_t dim = 0; dim < shared_.sizes.size(); ++dim) {
            element += (in_chunk_[dim] + index(dim)) * stored_.strides[dim];
        }
        return element;
    }

  private:
    [[nodiscard]] std::int64_t index(std::size_t dim) const {
        return dim < outer_dims_ ? index_[dim] : 0;
    }

    const StoredTensor& stored_;
    const Box& shared_;
    Shape wanted_strides_;
    Shape in_wanted_;
    Shape in_chunk_;
    Shape index_;
    std::size_t outer_dims_ = 0;
    std::int64_t run_ = 1;
    bool done_ = false;
};

}  // namespace

std::uint64_t copy_shared(ReadableFile& file, StoredPayload& payload, const Box& chunk,
                          const Box& wanted, std::uint64_t offset_bytes, std::span<std::byte> out) {
    const std::optional<Box> shared = optim::intersect(chunk, wanted);
    if (!shared || out.empty()) {
        return 0;
    }
    const std::uint64_t item = sim::size_of(payload.tensor.dtype);
    SharedRuns runs(payload.tensor, chunk, wanted, *shared);
    RecordReader reader(file, payload);
    const std::uint64_t run_bytes = static_cast<std::uint64_t>(runs.run_elements()) * item;
    const std::uint64_t end_bytes = offset_bytes + out.size();
    std::uint64_t copied = 0;
    for (runs.seek(static_cast<std::int64_t>(offset_bytes / item)); !runs.done(); runs.next()) {
        const std::uint64_t begin = static_cast<std::uint64_t>(runs.wanted_element()) * item;
        if (begin >= end_bytes) {
            break;
        }
        const std::uint64_t from = std::max(begin, offset_bytes);
        const std::uint64_t to = std::min(begin + run_bytes, end_bytes);
        if (from < to) {
            const std::uint64_t stored =
                static_cast<std::uint64_t>(runs.stored_element()) * item + (from - begin);
            reader.read(stored, out.subspan(from - offset_bytes, to - from));
            copied += to - from;
        }
    }
    return copied;
}

}  // namespace swaplab::harness
