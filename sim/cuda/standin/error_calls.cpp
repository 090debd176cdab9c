/// The last error of a thread.

#include "cuda/standin/runtime.hpp"

#include <utility>

using namespace swaplab::sim;

namespace {

// Where no driver is, these find that out anew, as every call does.
cudaError_t last_error(bool forget) {
    const cudaError_t broken = host_call([](const Runtime&) {});
    if (broken != cudaSuccess) {
        return broken;
    }
    ThreadState& state = Runtime::thread();
    return forget ? std::exchange(state.last_error, cudaSuccess) : state.last_error;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
    return last_error(true);
}

cudaError_t cudaPeekAtLastError() {
    return last_error(false);
}

}  // extern "C"
