#pragma once

/// Progress for people while scenarios run, and the watchdog of steps that never end.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <iosfwd>
#include <mutex>
#include <string>
#include <thread>

namespace swaplab::harness::cli {

/// One line on a terminal, rewritten at most 10 times a second. A step that never ends cannot be
/// stopped (ranks are fibers of this thread): after its limit and a grace of the same length, at
/// least 2 s, in which a slow one may still end and be reported with all else, the watchdog says
/// which step hung and ends the process with exit code 5.
/// Threads: step(), finished() and erase() from one thread; owns the watchdog's thread.
class LiveLine {
  public:
    LiveLine(std::ostream& err, bool shown, std::size_t runs);
    ~LiveLine();
    LiveLine(const LiveLine&) = delete;
    LiveLine& operator=(const LiveLine&) = delete;

    /// A limit of 0: no step runs any more.
    void step(const std::string& run, const std::string& label, std::int64_t timeout_ms);
    void finished(bool failed);
    void erase();

  private:
    using Clock = std::chrono::steady_clock;
    void watch();

    std::ostream& err_;
    bool shown_;
    std::size_t runs_;
    std::size_t done_ = 0;
    std::size_t failed_ = 0;
    bool drawn_ = false;
    Clock::time_point begin_ = Clock::now();
    Clock::time_point last_drawn_{};

    std::mutex mutex_;
    std::condition_variable changed_;
    bool ending_ = false;
    std::string what_;  ///< "run, step": empty while none runs
    Clock::time_point deadline_{};
    std::thread watchdog_;
};

}  // namespace swaplab::harness::cli
