#pragma once

/// Progress for people while scenarios run, and the watchdog of steps that never end.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <string>
#include <thread>

namespace swaplab::harness::cli {

/// One line on a terminal, rewritten at most 10 times a second. A step that never ends cannot be
/// stopped (ranks are fibers or threads of this process): after its limit and a grace of the same
/// length, at least 2 s, in which a slow one may still end and be reported with all else, the
/// watchdog calls `on_hang`, which reports and must end the process.
/// Threads: step(), finished() and erase() from one thread at a time; owns the watchdog's thread,
/// on which `on_hang` runs, and which exists only while a step with a limit does: a world of
/// processes cannot start where threads are. What the first thread did before step() may be read
/// there: while a step runs, that thread does nothing else.
class LiveLine {
  public:
    /// Told the step that does not end.
    using OnHang = std::function<void(const std::string& step)>;

    /// `columns`: width of the terminal.
    LiveLine(std::ostream& err, bool shown, std::size_t columns, std::size_t runs, OnHang on_hang);
    ~LiveLine();
    LiveLine(const LiveLine&) = delete;
    LiveLine& operator=(const LiveLine&) = delete;

    /// A limit of 0: nothing to watch, for no step runs any more or its ranks watch themselves.
    void step(const std::string& run, const std::string& label, std::int64_t timeout_ms);
    void finished(bool failed);
    void erase();

  private:
    using Clock = std::chrono::steady_clock;
    void watch(const std::string& label, Clock::time_point now, std::int64_t timeout_ms);
    void wait_for_hang();
    void end_watch();

    std::ostream& err_;
    bool shown_;
    std::size_t columns_;
    std::size_t runs_;
    OnHang on_hang_;
    std::size_t done_ = 0;
    std::size_t failed_ = 0;
    bool drawn_ = false;
    Clock::time_point begin_ = Clock::now();
    Clock::time_point last_drawn_{};

    std::mutex mutex_;
    std::condition_variable changed_;
    bool ending_ = false;
    std::string step_;
    Clock::time_point deadline_{};
    std::thread watchdog_;
};

}  // namespace swaplab::harness::cli
