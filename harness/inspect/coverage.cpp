#include "inspect/coverage.hpp"

#include "swaplab/sim/assert.hpp"

#include <algorithm>
#include <set>

namespace swaplab::harness {
namespace {

using optim::Box;
using optim::Shape;

/// A tiling visits each box once per dim; boxes that overlap on purpose can ask for boxes^dims.
constexpr std::size_t max_visits = 10'000'000;

/// Cuts the tensor dim by dim at every border of the boxes that are left, so that each piece at the
/// bottom lies wholly inside or outside of each box.
class Counter {
  public:
    Counter(const Shape& shape, Coverage& result) : shape_(shape), result_(result) {}

    void count(std::size_t dim, const std::vector<const Box*>& boxes, Box piece) {
        if (dim == shape_.size()) {
            note(static_cast<int>(boxes.size()), piece);
            return;
        }
        std::set<std::int64_t> cuts{0, shape_[dim]};
        std::multimap<std::int64_t, const Box*> starts;
        for (const Box* box : boxes) {
            cuts.insert(box->offsets[dim]);
            cuts.insert(box->offsets[dim] + box->sizes[dim]);
            starts.emplace(box->offsets[dim], box);
        }
        std::vector<const Box*> here;
        auto next = starts.begin();
        for (auto from = cuts.begin(), to = std::next(from); to != cuts.end(); ++from, ++to) {
            here.erase(std::remove_if(here.begin(), here.end(),
                                      [&](const Box* box) {
                                          return box->offsets[dim] + box->sizes[dim] <= *from;
                                      }),
                       here.end());
            for (; next != starts.end() && next->first == *from; ++next) {
                here.push_back(next->second);
            }
            visits_ += 1 + here.size();
            if (visits_ > max_visits) {
                result_.complete = false;
                return;
            }
            piece.offsets[dim] = *from;
            piece.sizes[dim] = *to - *from;
            count(dim + 1, here, piece);
        }
    }

  private:
    void note(int copies, const Box& piece) {
        result_.copies[copies] += optim::numel(piece.sizes);
        if (copies == 0 && !result_.first_gap) {
            result_.first_gap = piece;
        }
        if (copies > 1 && !result_.first_overlap) {
            result_.first_overlap = piece;
        }
    }

    const Shape& shape_;
    Coverage& result_;
    std::size_t visits_ = 0;
};

}  // namespace

std::int64_t Coverage::covered() const {
    const auto none = copies.find(0);
    return elements - (none == copies.end() ? 0 : none->second);
}

std::int64_t Coverage::covered_twice_or_more() const {
    std::int64_t sum = 0;
    for (auto it = copies.upper_bound(1); it != copies.end(); ++it) {
        sum += it->second;
    }
    return sum;
}

bool is_inside(const Box& box, const Shape& shape) {
    if (box.offsets.size() != shape.size() || box.sizes.size() != shape.size()) {
        return false;
    }
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        if (box.offsets[dim] < 0 || box.sizes[dim] < 0 || box.offsets[dim] > shape[dim] ||
            box.sizes[dim] > shape[dim] - box.offsets[dim]) {
            return false;
        }
    }
    return true;
}

Coverage cover(const Shape& shape, const std::vector<Box>& boxes) {
    Coverage result;
    result.elements = optim::numel(shape);
    if (result.elements == 0) {
        return result;
    }
    std::vector<const Box*> all;
    for (const Box& box : boxes) {
        SWAPLAB_ASSERT(is_inside(box, shape),
                       "box " + optim::to_string(box) + " of " + optim::to_string(shape));
        if (optim::numel(box.sizes) > 0) {
            all.push_back(&box);
        }
    }
    Counter(shape, result).count(0, all, {Shape(shape.size(), 0), shape});
    return result;
}

}  // namespace swaplab::harness
