#include "world/fiber.hpp"

#include "simulated/host_trap.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/mutant.hpp"

#include <cerrno>
#include <cstring>
#include <cxxabi.h>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#elif defined(SWAPLAB_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace swaplab::sim {
namespace {

constexpr std::size_t stack_bytes = std::size_t{1} << 20U;

thread_local Fiber* current_fiber = nullptr;

FiberStack map_stack() {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* memory = ::mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || ::mprotect(memory, page, PROT_NONE) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot map the stack of a rank");
    }
    std::byte* bottom = static_cast<std::byte*>(memory) + page;
#if defined(__SANITIZE_ADDRESS__)
    __lsan_register_root_region(bottom, stack_bytes);
#endif
    return {bottom, stack_bytes};
}

void unmap_stack(const FiberStack& stack) {
#if defined(__SANITIZE_ADDRESS__)
    __lsan_unregister_root_region(stack.bottom, stack.bytes);
    // The next mapping at this address must not inherit red zones of frames that never returned.
    __asan_unpoison_memory_region(stack.bottom, stack.bytes);
#endif
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    ::munmap(stack.bottom - page, stack.bytes + page);
}

/// Stacks of this thread's finished fibers, used again: mapping one costs more than running a short
/// fiber.
struct FreeStacks {
    ~FreeStacks() {
        for (const FiberStack& stack : stacks) {
            unmap_stack(stack);
        }
    }
    std::vector<FiberStack> stacks;
};

std::vector<FiberStack>& free_stacks() {
    thread_local FreeStacks free;
    return free.stacks;
}

FiberStack take_stack() {
    if (free_stacks().empty()) {
        return map_stack();
    }
    const FiberStack stack = free_stacks().back();
    free_stacks().pop_back();
    return stack;
}

// Both sides store what the runtime holds for the side that stops and take back their own.
void swap_exception_state(void* state, std::size_t bytes) {
    if (SWAPLAB_MUTANT("world.exceptions_shared")) {
        return;
    }
    std::byte saved[2 * sizeof(void*)];
    auto* globals = static_cast<std::byte*>(static_cast<void*>(abi::__cxa_get_globals()));
    std::memcpy(saved, globals, bytes);
    std::memcpy(globals, state, bytes);
    std::memcpy(state, saved, bytes);
}

}  // namespace

/// Hands Boost the stack chosen before; its end of life is the Fiber's.
class Fiber::StackAllocator {
  public:
    explicit StackAllocator(FiberStack stack) noexcept : stack_(stack) {}
    boost::context::stack_context allocate() {
        boost::context::stack_context context;
        context.size = stack_.bytes;
        context.sp = stack_.bottom + stack_.bytes;
        return context;
    }
    void deallocate(boost::context::stack_context& /*context*/) noexcept {}

  private:
    FiberStack stack_;
};

Fiber* Fiber::current() noexcept {
    return current_fiber;
}

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {
    inside_ = boost::context::fiber(std::allocator_arg, StackAllocator(stack_),
                                    [this](boost::context::fiber&& outside) {
                                        outside_ = &outside;
                                        arrive_in_fiber();
                                        body_();
                                        finished_ = true;
                                        prepare_leave(true);
                                        return std::move(outside);
                                    });
#if defined(SWAPLAB_TSAN)
    sanitizer_inside_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
    SWAPLAB_ASSERT(finished_ || abandoned_, "a fiber must end before it is destroyed");
#if defined(SWAPLAB_TSAN)
    __tsan_destroy_fiber(sanitizer_inside_);
#endif
    if (finished_) {
        free_stacks().push_back(stack_);
    }
}

void Fiber::resume() {
    SWAPLAB_ASSERT(!finished_ && !abandoned_, "the fiber has ended");
    outer_ = std::exchange(current_fiber, this);
    swap_exception_state(&exceptions_, sizeof(exceptions_));
#if defined(SWAPLAB_TSAN)
    sanitizer_outside_ = __tsan_get_current_fiber();
#endif
    set_touch_exit([] { current_fiber->leave_for_good(); });
    if (sigsetjmp(trap_landing_, 0) == 0) {
        enter_fiber();
    } else {
        abandoned_ = true;
    }
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(sanitizer_outside_, nullptr, nullptr);
#endif
    swap_exception_state(&exceptions_, sizeof(exceptions_));
    current_fiber = outer_;
    if (outer_ == nullptr) {
        set_touch_exit(nullptr);
    }
}

void Fiber::enter_fiber() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&sanitizer_outside_, stack_.bottom, stack_.bytes);
#elif defined(SWAPLAB_TSAN)
    __tsan_switch_to_fiber(sanitizer_inside_, 0);
#endif
    inside_ = std::move(inside_).resume();
}

void Fiber::arrive_in_fiber() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(sanitizer_inside_, &outside_stack_, &outside_stack_bytes_);
#endif
}

void Fiber::prepare_leave(bool for_good) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &sanitizer_inside_, outside_stack_,
                                   outside_stack_bytes_);
#elif defined(SWAPLAB_TSAN)
    __tsan_switch_to_fiber(sanitizer_outside_, 0);
#endif
    static_cast<void>(for_good);
}

void Fiber::suspend() {
    SWAPLAB_ASSERT(current_fiber == this, "only the running fiber can suspend itself");
    prepare_leave(false);
    *outside_ = std::move(*outside_).resume();
    arrive_in_fiber();
}

void Fiber::leave_for_good() {
    prepare_leave(true);
    siglongjmp(trap_landing_, 1);
}

}  // namespace swaplab::sim
