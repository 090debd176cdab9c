#include "simulated/host_trap.hpp"

#include <map>
#include <mutex>
#include <signal.h>
#include <string>
#include <ucontext.h>
#include <unistd.h>

namespace swaplab::sim {
namespace {

struct Watched {
    std::size_t bytes = 0;
    TouchListener* listener = nullptr;
};

// The handler takes this lock and reads the map. It may: a touch of device memory is a plain load
// or store of the program, never inside the functions below.
struct Registry {
    std::mutex mutex;
    std::map<const std::byte*, Watched> ranges;

    TouchListener* find(const void* pointer) {
        const auto* address = static_cast<const std::byte*>(pointer);
        const std::lock_guard lock(mutex);
        auto after = ranges.upper_bound(address);
        if (after == ranges.begin()) {
            return nullptr;
        }
        --after;
        return address < after->first + after->second.bytes ? after->second.listener : nullptr;
    }
};

Registry& registry() {
    static Registry instance;
    return instance;
}

struct sigaction previous_action;

struct PendingTouch {
    TouchListener* listener = nullptr;
    const void* address = nullptr;
    TouchListener::Kind kind = TouchListener::Kind::touch;
};
thread_local PendingTouch pending_touch;
thread_local void (*touch_exit)() = nullptr;

TouchListener::Kind kind_of([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
    constexpr greg_t write_bit = 2;
    const auto* machine = static_cast<const ucontext_t*>(context);
    return (machine->uc_mcontext.gregs[REG_ERR] & write_bit) != 0 ? TouchListener::Kind::write
                                                                  : TouchListener::Kind::read;
#else
    return TouchListener::Kind::touch;
#endif
}

void say(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& exception) {
        const std::string text = std::string("error: ") + exception.what() + "\n";
        static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
    }
}

void hand_on(int signal_number, siginfo_t* info, void* context) {
    if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
        previous_action.sa_sigaction(signal_number, info, context);
    } else if (previous_action.sa_handler == SIG_DFL || previous_action.sa_handler == SIG_IGN) {
        ::sigaction(signal_number, &previous_action,
                    nullptr);  // the access faults again and ends us
    } else {
        previous_action.sa_handler(signal_number);
    }
}

void on_fault(int signal_number, siginfo_t* info, void* context) {
    TouchListener* const listener = registry().find(info->si_addr);
    if (listener == nullptr) {
        return hand_on(signal_number, info, context);
    }
    if (listener->opens(info->si_addr, kind_of(context))) {
        return;
    }
    pending_touch = {listener, info->si_addr, kind_of(context)};
    if (touch_exit != nullptr) {
        // The handler is left by a jump, so nobody else takes back the signals that it blocks.
        ::pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
        touch_exit();
    }
    say(report_touch());
    hand_on(signal_number, info, context);
}

void install_handler() {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGSEGV, &action, &previous_action);
}

}  // namespace

TouchWatch::TouchWatch(const std::byte* begin, std::size_t bytes, TouchListener& listener)
    : begin_(begin) {
    static std::once_flag installed;
    std::call_once(installed, install_handler);
    const std::lock_guard lock(registry().mutex);
    registry().ranges[begin] = {bytes, &listener};
}

TouchWatch::~TouchWatch() {
    const std::lock_guard lock(registry().mutex);
    registry().ranges.erase(begin_);
}

void set_touch_exit(void (*leave)()) noexcept {
    touch_exit = leave;
}

std::exception_ptr report_touch() {
    return pending_touch.listener->host_touched(pending_touch.address, pending_touch.kind);
}

}  // namespace swaplab::sim
