#include "simulated/launches.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace swaplab::sim {

Launches::Launches(const std::byte* begin, std::uint64_t bytes, std::ptrdiff_t alias_offset_bytes,
                   Check check, std::function<void(const void*)> undeclared)
    : begin_(begin),
      end_(begin + bytes),
      alias_offset_bytes_(alias_offset_bytes),
      check_(check),
      undeclared_(std::move(undeclared)) {
    if (check == Check::on) {
        asked_ = [this](const void* pointer) { asked(pointer); };
    }
}

void Launches::run(std::uint64_t launch) {
    struct Ended {  // also when the body throws
        HandleTable<Kernel>& kernels;
        std::uint64_t launch;
        ~Ended() { kernels.remove(launch); }
    };
    const Ended ended{kernels_, launch};
    const Kernel& kernel = *kernels_.find(launch);
    if (!kernel.host_body) {
        return;
    }
    if (check_ == Check::on) {
        declare(kernel);
        save_gaps();
    }
    kernel.host_body(DeviceAccess(alias_offset_bytes_, asked_ ? &asked_ : nullptr));
    if (check_ == Check::on) {
        compare_gaps();
    }
}

void Launches::declare(const Kernel& kernel) {
    declared_.clear();
    for (const auto* ranges : {&kernel.reads, &kernel.writes}) {
        for (const ByteRange& range : *ranges) {
            const auto* begin = static_cast<const std::byte*>(range.pointer);
            declared_.push_back({begin, begin + range.bytes});
        }
    }
    std::sort(declared_.begin(), declared_.end(),
              [](const Range& a, const Range& b) { return std::less<>()(a.begin, b.begin); });
    std::size_t merged = 0;
    for (std::size_t i = 1; i < declared_.size(); ++i) {
        if (declared_[i].begin <= declared_[merged].end) {
            declared_[merged].end = std::max(declared_[merged].end, declared_[i].end);
        } else {
            declared_[++merged] = declared_[i];
        }
    }
    declared_.resize(std::min(declared_.size(), merged + 1));
}

void Launches::asked(const void* device_pointer) const {
    const auto* address = static_cast<const std::byte*>(device_pointer);
    const bool inside =
        std::any_of(declared_.begin(), declared_.end(), [address](const Range& range) {
            return address == range.begin || (address > range.begin && address < range.end);
        });
    if (!inside && !SWAPLAB_MUTANT("sim.asked_unchecked")) {
        undeclared_(device_pointer);
    }
}

void Launches::save_gaps() {
    gaps_.clear();
    saved_.clear();
    const std::byte* before_from = begin_;
    for (std::size_t i = 0; i < declared_.size(); ++i) {
        const Range& range = declared_[i];
        if (range.begin < begin_ || range.end > end_) {
            continue;  // 0 bytes of nothing
        }
        const std::byte* after_to = i + 1 < declared_.size() ? declared_[i + 1].begin : end_;
        const auto guard = static_cast<std::ptrdiff_t>(guard_bytes);
        save_gap({range.begin - std::min(range.begin - before_from, guard), range.begin});
        before_from = range.end + std::min(after_to - range.end, guard);
        save_gap({range.end, before_from});
    }
}

void Launches::save_gap(Range gap) {
    if (gap.begin == gap.end) {
        return;
    }
    gaps_.push_back({gap, saved_.size()});
    saved_.insert(saved_.end(), gap.begin + alias_offset_bytes_, gap.end + alias_offset_bytes_);
}

void Launches::compare_gaps() const {
    for (const Gap& gap : gaps_) {
        const std::byte* now = gap.range.begin + alias_offset_bytes_;
        const auto bytes = static_cast<std::size_t>(gap.range.end - gap.range.begin);
        const std::byte* saved = saved_.data() + gap.saved_at;
        if (std::memcmp(now, saved, bytes) != 0 && !SWAPLAB_MUTANT("sim.gaps_unchecked")) {
            undeclared_(gap.range.begin + (std::mismatch(now, now + bytes, saved).first - now));
        }
    }
}

}  // namespace swaplab::sim
