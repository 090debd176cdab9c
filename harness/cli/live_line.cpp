#include "cli/live_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

namespace swaplab::harness::cli {

LiveLine::LiveLine(std::ostream& err, bool shown, std::size_t columns, std::size_t runs,
                   OnHang on_hang)
    : err_(err), shown_(shown), columns_(columns), runs_(runs), on_hang_(std::move(on_hang)) {}

LiveLine::~LiveLine() {
    end_watch();
}

void LiveLine::end_watch() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    if (watchdog_.joinable()) {
        watchdog_.join();
    }
    ending_ = false;
}

void LiveLine::step(const std::string& run, const std::string& label, std::int64_t timeout_ms) {
    const auto now = Clock::now();
    timeout_ms > 0 ? watch(label, now, timeout_ms) : end_watch();
    if (!shown_ || label.empty() ||
        (drawn_ && now - last_drawn_ < std::chrono::milliseconds(100))) {
        return;
    }
    const std::chrono::duration<double> spent = now - begin_;
    const std::string line = fmt::format("[{}/{}] {}   {}   {} failed   {:.1f} s", done_ + 1, runs_,
                                         run, label, failed_, spent.count());
    // A line that wraps could not be erased.
    err_ << "\r\x1b[K" << line.substr(0, columns_ - 1) << std::flush;
    drawn_ = true;
    last_drawn_ = now;
}

void LiveLine::finished(bool failed) {
    ++done_;
    failed_ += failed ? 1 : 0;
    end_watch();
}

void LiveLine::erase() {
    if (drawn_) {
        err_ << "\r\x1b[K" << std::flush;
        drawn_ = false;
    }
}

void LiveLine::watch(const std::string& label, Clock::time_point now, std::int64_t timeout_ms) {
    constexpr std::int64_t least_grace_ms = 2000;
    {
        const std::lock_guard lock(mutex_);
        step_ = label;
        deadline_ =
            now + std::chrono::milliseconds(timeout_ms + std::max(timeout_ms, least_grace_ms));
    }
    if (!watchdog_.joinable()) {
        watchdog_ = std::thread([this] { wait_for_hang(); });
    }
    changed_.notify_one();
}

void LiveLine::wait_for_hang() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
        const auto deadline = deadline_;
        changed_.wait_until(lock, deadline);
        if (!ending_ && deadline == deadline_ && Clock::now() >= deadline) {
            on_hang_(step_);
        }
    }
}

}  // namespace swaplab::harness::cli
