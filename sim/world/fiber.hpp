#pragma once

/// One stackful fiber: the only place that knows Boost.Context and the sanitizers' fiber calls.

#include <boost/context/fiber.hpp>

#include <csetjmp>
#include <cstddef>
#include <exception>
#include <functional>

namespace swaplab::sim {

/// Memory that one fiber runs on, with a guard page below.
struct FiberStack {
    std::byte* bottom = nullptr;  ///< lowest usable address
    std::size_t bytes = 0;
};

/// A function that can stop in the middle and go on later, on the thread that made it.
///
/// The C++ runtime's record of exceptions being handled goes with the fiber: a switch inside a
/// catch block does not hand one fiber's exception to another. A fiber is either finished, or
/// abandoned by leave_for_good(), when it is destroyed; anything else is an assertion.
class Fiber {
  public:
    /// `body` must not throw.
    explicit Fiber(std::function<void()> body);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Runs the body until it suspends, ends or is abandoned.
    void resume();
    /// From inside the body: returns to the caller of resume().
    void suspend();
    /// From inside the body or a signal handler there: resume() returns, the body never goes on and
    /// its stack is kept as it is until the process ends, because nobody may unwind it.
    [[noreturn]] void leave_for_good();

    [[nodiscard]] bool finished() const noexcept { return finished_; }
    [[nodiscard]] bool abandoned() const noexcept { return abandoned_; }
    /// The fiber whose body runs now on this thread; nullptr outside of all.
    [[nodiscard]] static Fiber* current() noexcept;

  private:
    class StackAllocator;
    /// The runtime's per-thread exception state (Itanium C++ ABI, __cxa_eh_globals).
    struct ExceptionState {
        void* caught = nullptr;
        unsigned int uncaught = 0;
    };

    void enter_fiber();
    void arrive_in_fiber();
    void prepare_leave(bool for_good);

    std::function<void()> body_;
    FiberStack stack_;
    boost::context::fiber inside_;  ///< where the body goes on
    /// Where resume() goes on. On the fiber's own stack, so that it is abandoned with it.
    boost::context::fiber* outside_ = nullptr;
    ExceptionState exceptions_;  ///< the body's while it is suspended, the caller's while it runs
    Fiber* outer_ = nullptr;
    sigjmp_buf trap_landing_{};
    bool finished_ = false;
    bool abandoned_ = false;
    [[maybe_unused]] void* sanitizer_inside_ = nullptr;     ///< ASan's fake stack, or TSan's fiber
    [[maybe_unused]] void* sanitizer_outside_ = nullptr;    ///< likewise, of the caller
    [[maybe_unused]] const void* outside_stack_ = nullptr;  ///< for ASan
    [[maybe_unused]] std::size_t outside_stack_bytes_ = 0;
};

}  // namespace swaplab::sim
