#pragma once

/// One device of the stand-in: a simulated device, and the errors that a real one would be in.

#include "cuda/standin/failure.hpp"
#include "cuda/standin/pool.hpp"
#include "simulated/accelerator.hpp"

#include "swaplab/sim/cuda/standin.hpp"
#include "swaplab/sim/fault_plan.hpp"
#include "swaplab/sim/stream.hpp"

#include <cstdint>
#include <cuda_runtime_api.h>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace swaplab::sim {

class Gpu;

inline constexpr int device_count_max = 64;
inline constexpr int stream_priority_least = 0;
inline constexpr int stream_priority_greatest = -5;

struct StreamEntry {
    Gpu* gpu = nullptr;
    StreamRef ref;
    unsigned flags = cudaStreamDefault;
    int priority = 0;
    unsigned long long id = 0;
    std::optional<EventRef> mark = {};    ///< where the stream ended when the host last asked
    bool marked = false;                  ///< whether it still ends there
    std::uint64_t marked_operations = 0;  ///< issued to the device until then
    bool busy = false;                    ///< the host has not waited for all that was issued

    void note_issue() noexcept {
        marked = false;
        busy = true;
    }
};

/// What a call does, beside what it says.
enum class Effect : std::uint8_t {
    none,
    release,  ///< gives back: done on a broken device, too, so that its ledger stays true
};

struct CallInfo {
    const char* name;
    Effect effect = Effect::none;
    std::uint64_t bytes = 0;
};

/// Throws ArgumentError for faults that their calls cannot have.
void check_faults(const std::vector<StandinFault>& faults);

class Gpu {
  public:
    Gpu(const StandinOptions& options, int ordinal);
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    [[nodiscard]] SimulatedDevice& device() noexcept { return device_; }
    [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
    [[nodiscard]] std::uint64_t total_bytes() const noexcept { return total_bytes_; }
    [[nodiscard]] Pool& default_pool() noexcept { return pools_.front(); }
    /// By number, 0 the default one; nullptr: destroyed, or never there.
    [[nodiscard]] Pool* pool(std::size_t number) noexcept;
    [[nodiscard]] std::size_t add_pool();
    void destroy_pool(std::size_t number);
    /// The host has waited: pools keep what their thresholds allow.
    void release_pools();
    [[nodiscard]] std::uint64_t unused_pool_bytes() const noexcept;
    /// Where memory of cudaMalloc comes from: no work of the program runs there.
    [[nodiscard]] StreamRef allocation_stream() const noexcept { return *allocation_stream_; }
    /// cudaStreamLegacy.
    [[nodiscard]] StreamEntry& default_stream();
    /// cudaStreamPerThread of the calling thread.
    [[nodiscard]] StreamEntry& thread_stream();

    /// Where the device has its memory, live or not: no host memory lies between.
    void note_memory(const void* begin, std::uint64_t bytes);
    [[nodiscard]] bool has_address(const void* pointer) const noexcept;

    /// See Accelerator::register_pinned().
    void register_pinned(void* pages, std::uint64_t bytes, std::string_view tag, CallSite site) {
        device_.register_pinned(pages, bytes, tag, site);
    }

    void arm(const std::vector<StandinFault>& faults);
    /// Issues to `stream` what fails as it runs, instead of the work of `call`.
    void fail_late(const CallInfo& call, CallSite site, StreamEntry& stream, cudaError_t code,
                   const std::string& reason);
    /// Whether the call is to be carried out. If not, its work has been replaced by what fails as
    /// it runs. Throws the Failure of a fault, or of a device that is broken.
    [[nodiscard]] bool admits(const CallInfo& call, CallSite site, StreamEntry* stream);
    /// Throws the failure of a broken device.
    void check() const;
    /// From now on every call fails with `code`.
    void break_down(cudaError_t code, const std::string& text);
    /// A step of giving something back: not taken on a broken device, and what it finds lost is
    /// left to check().
    template <class Step>
    void unless_lost(const Step& step) {
        try {
            if (!broken_) {
                step();
            }
        } catch (const DeviceLost& lost) {
            break_down(late_code_, lost.what());
        }
    }
    /// The code of what failed behind the back of its call.
    [[nodiscard]] cudaError_t late_code() const noexcept { return late_code_; }

    void synchronize(StreamEntry& entry, CallSite site);
    /// Those that have no handle of their own, and those destroyed.
    void synchronize_others(CallSite site);
    [[nodiscard]] bool query(StreamEntry& entry, CallSite site);
    /// When an operation, by its number in the trace, ends in virtual time.
    [[nodiscard]] std::uint64_t end_picoseconds(std::uint64_t operation);
    /// What it holds still runs, and is waited for when the device is.
    void destroy(StreamEntry& entry);

  private:
    [[nodiscard]] EventRef mark(StreamEntry& entry, CallSite site);
    /// What an armed fault is to do.
    [[nodiscard]] const StandinFault& armed(const Fault& fault) const;

    int ordinal_;
    std::uint64_t total_bytes_;
    Accelerator device_;
    std::optional<Stream> allocation_stream_;
    std::optional<StreamEntry> default_stream_;
    std::map<std::thread::id, StreamEntry> thread_streams_;
    std::optional<StreamEntry> destroyed_;  ///< is behind the ends of streams destroyed while busy
    std::deque<Pool> pools_{1};  ///< numbers are never reused: what is allocated outlives its pool
    const std::byte* memory_begin_ = nullptr;
    const std::byte* memory_end_ = nullptr;
    FaultInjector injector_;
    std::vector<std::pair<Fault, StandinFault>> armed_;
    cudaError_t late_code_ = cudaErrorLaunchFailure;
    std::optional<Failure> broken_;
    DeviceProfile profile_;
    std::vector<OperationTime> times_;  ///< of what was issued when they were asked for last
};

}  // namespace swaplab::sim
