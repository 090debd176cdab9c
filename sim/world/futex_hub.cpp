#include "world/futex_hub.hpp"

#include <climits>

#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace swaplab::sim {
namespace {

/// A yield takes long where many processes want to run: then it does not pay.
constexpr int pauses_max = 40;
constexpr std::chrono::microseconds pauses_max_time{100};
/// After that long a rank looks whether the world broke, in case nobody lived to wake it.
constexpr long slice_ns = 20'000'000;

long futex(std::atomic<std::uint32_t>& word, int operation, bool is_private, std::uint32_t value,
           const timespec* timeout) {
    static_assert(sizeof(word) == sizeof(std::uint32_t));
    return ::syscall(SYS_futex, &word, is_private ? operation | FUTEX_PRIVATE_FLAG : operation,
                     value, timeout, nullptr, 0);
}

}  // namespace

bool FutexHub::pause(Wait& wait) {
    const auto now = std::chrono::steady_clock::now();
    if (wait.pauses++ == 0) {
        wait.since = now;
    }
    ::sched_yield();
    return wait.pauses < pauses_max && now - wait.since < pauses_max_time;
}

bool FutexHub::sleep(Wait& wait, Slot& slot, std::uint32_t seen) {
    const timespec slice{0, slice_ns};
    futex(slot.bell, FUTEX_WAIT, private_, seen, &slice);
    const auto now = std::chrono::steady_clock::now();
    if (!wait.counts) {
        wait.since = now;
    }
    return now - wait.since < deadline_;
}

void FutexHub::wake(int /*rank*/, Slot& slot) {
    futex(slot.bell, FUTEX_WAKE, private_, INT_MAX, nullptr);
}

}  // namespace swaplab::sim
