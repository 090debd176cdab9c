#pragma once

/// Catches host accesses to device memory (SIGSEGV on an arena's PROT_NONE addresses).

#include <cstddef>
#include <exception>

namespace swaplab::sim {

/// Who is told about touches of one range of addresses.
class TouchListener {
  public:
    enum class Kind { read, write, touch };  ///< touch: the machine does not say which

    /// Whether the access may be made again: what it met is open now. Called by signal handlers.
    virtual bool opens(const void* address, Kind kind) noexcept = 0;
    /// Of an access that may not: notes the touch and returns it as an exception for the result of
    /// the rank that did it.
    virtual std::exception_ptr host_touched(const void* address, Kind kind) = 0;

  protected:
    ~TouchListener() = default;
};

/// Watches [begin, begin + bytes) while it lives. The first one installs the signal handler, which
/// hands every fault outside of watched ranges to the handler found before.
class TouchWatch {
  public:
    TouchWatch(const std::byte* begin, std::size_t bytes, TouchListener& listener);
    ~TouchWatch();
    TouchWatch(const TouchWatch&) = delete;
    TouchWatch& operator=(const TouchWatch&) = delete;

  private:
    const std::byte* begin_;
};

/// How this thread leaves the code that touched device memory: called from the signal handler, must
/// not return. nullptr (the initial state): there is no way out, the process ends.
void set_touch_exit(void (*leave)()) noexcept;

/// After such an exit: tells the listener about this thread's touch.
[[nodiscard]] std::exception_ptr report_touch();

}  // namespace swaplab::sim
