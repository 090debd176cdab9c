#include "cli/live_line.hpp"

#include "swaplab/harness/exit_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace swaplab::harness::cli {

LiveLine::LiveLine(std::ostream& err, bool shown, std::size_t runs)
    : err_(err), shown_(shown), runs_(runs), watchdog_([this] { watch(); }) {}

LiveLine::~LiveLine() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    watchdog_.join();
}

void LiveLine::step(const std::string& run, const std::string& label, std::int64_t timeout_ms) {
    const auto now = Clock::now();
    {
        const std::lock_guard lock(mutex_);
        constexpr std::int64_t least_grace_ms = 2000;
        what_ = timeout_ms > 0 ? fmt::format("{}   {}", run, label) : "";
        deadline_ =
            now + std::chrono::milliseconds(timeout_ms + std::max(timeout_ms, least_grace_ms));
    }
    changed_.notify_one();
    if (!shown_ || timeout_ms == 0 ||
        (drawn_ && now - last_drawn_ < std::chrono::milliseconds(100))) {
        return;
    }
    const std::chrono::duration<double> spent = now - begin_;
    err_ << fmt::format("\r\x1b[K[{}/{}] {}   {}   {} failed   {:.1f} s", done_ + 1, runs_, run,
                        label, failed_, spent.count())
         << std::flush;
    drawn_ = true;
    last_drawn_ = now;
}

void LiveLine::finished(bool failed) {
    ++done_;
    failed_ += failed ? 1 : 0;
    const std::lock_guard lock(mutex_);
    what_.clear();
}

void LiveLine::erase() {
    if (drawn_) {
        err_ << "\r\x1b[K" << std::flush;
        drawn_ = false;
    }
}

void LiveLine::watch() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
        if (what_.empty()) {
            changed_.wait(lock);
            continue;
        }
        const auto deadline = deadline_;
        changed_.wait_until(lock, deadline);
        if (!ending_ && !what_.empty() && deadline == deadline_ && Clock::now() >= deadline) {
            std::cout << "HANG    " << what_ << " did not end within its time limit\n"
                      << std::flush;
            std::_Exit(static_cast<int>(ExitCode::hang));
        }
    }
}

}  // namespace swaplab::harness::cli
