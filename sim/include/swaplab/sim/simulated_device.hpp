#pragma once

/// The simulated accelerator: real bytes, exact accounting, deferred execution, findings.

#include "swaplab/sim/device.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/timeline.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::sim {

/// Which of the operations that may legally run next does run.
/// fifo: in issue order. random: seeded choice. latest: adversarial, as late as order allows: a
/// stream advances only when something that somebody waits for needs it, youngest issue first.
/// pct: probabilistic concurrency testing (Burckhardt et al. 2010): streams have random priorities,
/// which change at pct_depth - 1 random places; finds a bug that needs that many orderings among n
/// streams and k operations with a probability of at least 1 / (n k^(depth - 1)).
/// replay: as a record says. chosen: the owner of the device chooses (see explore.hpp).
enum class Schedule : std::uint8_t { fifo, random, latest, pct, replay, chosen };

[[nodiscard]] std::string_view name_of(Schedule schedule) noexcept;
/// Of the schedules that need nothing but a name: fifo, random, latest, pct.
[[nodiscard]] std::optional<Schedule> schedule_from_name(std::string_view name) noexcept;

enum class FindingKind : std::uint8_t {
    race,
    leak,
    pending_work,
    unwaited_event,
    host_touch,
    host_pointer,
    use_after_free,
    in_flight_reuse,
    uninitialised,
    undeclared_access,
    reentrant_call,
    bad_argument,
};

[[nodiscard]] std::string_view name_of(FindingKind kind) noexcept;
[[nodiscard]] std::optional<FindingKind> finding_kind_from_name(std::string_view name) noexcept;

/// A rule of the device broken by the program. Findings never abort; they fail the test or scenario
/// that owns the device.
struct Finding {
    FindingKind kind{};
    std::string text;    ///< one sentence: operations, call sites, range, tags
    ErrorFields fields;  ///< the same facts as values
};

/// One operation as issued, in issue order, for traces and their comparison. Addresses never
/// appear: memory is named by tag and offset.
struct TraceEvent {
    std::string operation;  ///< "allocate", "copy h2d", "launch adamw", "host write", ...
    std::string stream;     ///< name given to create_stream, or empty
    std::string tag;        ///< memory concerned (of a copy: host side or destination), or empty
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
    CopyDirection direction{};  ///< meaningful for copies only
    friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

/// One operation that ran: its place in the trace, and a digest of what the trace says of it.
struct ExecutedOperation {
    std::uint64_t operation = 0;
    std::uint64_t digest = 0;
    friend bool operator==(const ExecutedOperation&, const ExecutedOperation&) = default;
};
/// What ran, in that order.
using ExecutionRecord = std::vector<ExecutedOperation>;

/// A moment of a run, between two calls of the host.
struct IssuePoint {
    std::uint64_t operations = 0;  ///< issued before it: the size of trace()
    std::uint64_t host_waits = 0;  ///< that had ended
};

/// The most bytes of device memory that any legal schedule occupies at once.
struct DevicePeak {
    std::uint64_t bytes = 0;
    /// A legal order of everything issued so far that reaches `bytes`.
    ExecutionRecord schedule;
    std::size_t operations_at_peak = 0;  ///< of `schedule`, have run when the peak is reached
    std::vector<Holder> by_tag;          ///< at the peak; largest first, ties by tag
};

/// The program did not do what the record to be replayed says. Fields: step, expected, found.
class ReplayDiverged : public DeviceError {
    using DeviceError::DeviceError;
};

/// How device memory is handed out.
/// raw: regions of 256 B from one address space; what is charged is what is reserved.
/// caching: PyTorch's CUDACachingAllocator: sizes round up to 512 B; up to 1 MiB come from segments
/// of 2 MiB, up to 10 MiB from segments of 20 MiB, larger ones have their own, of whole 2 MiB; a
/// free block serves its own stream only, best fit, and is split; memory freed on another stream
/// comes back when the allocator sees that stream there. Segments stay reserved until a request
/// does not fit: then the device is waited for, and all that are free as a whole are released.
/// (roundup_power2_divisions, max_split_size, garbage collection and expandable segments are off,
/// as by default.)
/// stream_ordered: cudaMallocAsync's pool: grows in pages of 2 MiB; a freed block goes to work that
/// is ordered after the free, or, if the schedule says so, to any once the free has run; before
/// memory runs out, to any, which then waits for the free. Unused pages are released when the host
/// synchronizes.
enum class AllocationPolicy : std::uint8_t { raw, caching, stream_ordered };
/// "raw", "caching", "stream_ordered".
[[nodiscard]] std::string_view name_of(AllocationPolicy policy) noexcept;
[[nodiscard]] std::optional<AllocationPolicy> allocation_policy_from_name(
    std::string_view name) noexcept;

/// exact: pages of 4 KiB, given back when freed. power_of_two: PyTorch's CachingHostAllocator:
/// sizes round up to a power of two, and what is freed is kept for requests of the same size.
enum class PinnedPolicy : std::uint8_t { exact, power_of_two };
/// "exact", "power_of_two".
[[nodiscard]] std::string_view name_of(PinnedPolicy policy) noexcept;
[[nodiscard]] std::optional<PinnedPolicy> pinned_policy_from_name(std::string_view name) noexcept;

/// What the policies hold, in PyTorch's words.
struct AllocatorStats {
    struct Bytes {
        std::uint64_t now = 0;
        std::uint64_t peak = 0;
        friend bool operator==(const Bytes&, const Bytes&) = default;
    };
    Bytes requested;        ///< as asked for
    Bytes allocated;        ///< as rounded, and with what was not worth splitting off
    Bytes active;           ///< that, and freed memory that waits for other streams
    Bytes reserved;         ///< taken from the device, but for what is outside of pools
    Bytes pinned_reserved;  ///< page-locked, in use or kept
    std::uint64_t segments = 0;
    std::uint64_t retries = 0;  ///< requests that did not fit at first
};

struct SimulatedDeviceOptions {
    int rank = 0;
    std::uint64_t capacity_bytes = std::uint64_t{1} << 30U;
    /// Of the capacity, taken by the device's own context: some 300 to 670 MB for CUDA
    /// (pytorch/pytorch#86509). On no ledger.
    std::uint64_t context_bytes = 0;
    Schedule schedule = Schedule::fifo;
    std::uint64_t seed = 1;  ///< the device uses hash_mix(seed, rank)
    /// Of pct: orderings that a bug may need (>= 1), and about how many operations a run has.
    std::uint64_t pct_depth = 3;
    std::uint64_t pct_operations = 1000;
    /// Of replay: the record of a run of the same program. Divergence is a ReplayDiverged from the
    /// call that waits, or from finish().
    ExecutionRecord record = {};
    /// Of replay: chances() of that run. Where they end, pageable uploads run late, and reuse is
    /// chosen by the seed.
    std::vector<bool> chances = {};
    /// Of chosen: which one of `count` >= 2 operations runs next (< count; in order of streams).
    /// Records and waits are no choice: they run as soon as they can. Of a call that may or may not
    /// wait for its work: 1 of 2 if it does.
    std::function<std::size_t(std::size_t count)> choose = {};
    /// Whether each access is checked: findings race, in_flight_reuse, uninitialised and
    /// undeclared_access.
    bool check_accesses = true;
    /// Whether what the host does to pinned memory without a scope is caught, too (Linux; needs
    /// check_accesses). From issue until the host is ordered after it, pages that an operation
    /// writes cannot be touched by the host and those it reads cannot be written. The first access
    /// to such a page that races is a race finding of the next call, and goes on; system calls that
    /// are given the page fail with EFAULT. Of memory that the device allocated; not of pages that
    /// the stand-in for CUDA is told to register, since these hold what is others', too.
    bool page_guards = false;
    /// Whether memory that holds nothing yet, or nothing any more, is filled with patterns.
    bool poison = true;
    AllocationPolicy allocation = AllocationPolicy::raw;
    /// Of stream_ordered: so much stays reserved, used or not (cudaMemPoolAttrReleaseThreshold).
    std::uint64_t release_threshold_bytes = 0;
    PinnedPolicy pinned = PinnedPolicy::exact;
    /// A request that would lock more pages of the host is an OutOfDeviceMemory of kind pinned.
    std::uint64_t pinned_quota_bytes = std::numeric_limits<std::uint64_t>::max();
};

/// A Device that runs on the host.
///
/// Operations are queued when called and run later, when the schedule picks them: while the host
/// waits (synchronize, query), never behind its back. Data moves when the operation runs. Device
/// memory is a memfd mapped twice at a constant distance: the address handed out is PROT_NONE, so a
/// host access traps (finding host_touch; the rank ends), the alias is used by the executor.
/// What CUDA leaves open is chosen, too: under random, pct and chosen an upload of pageable memory
/// may or may not have run when its call returns; under the others it has not.
/// A kernel or host function that throws loses the device (DeviceLost).
/// Fresh and freed device memory, and the destination of a download that is next in its stream, is
/// filled with poison patterns.
class SimulatedDevice : public Device {
  public:
    /// Findings so far, in order of discovery.
    [[nodiscard]] virtual const std::vector<Finding>& findings() const noexcept = 0;
    /// Everything issued since construction, in issue order.
    [[nodiscard]] virtual const std::vector<TraceEvent>& trace() const noexcept = 0;
    [[nodiscard]] virtual AllocatorStats allocator_stats() const noexcept = 0;
    /// The peaks of reserved and pinned_reserved count from now on.
    virtual void restart_reserved_peaks() noexcept = 0;
    /// Digest of the order in which operations ran; equal for equal seeds.
    [[nodiscard]] virtual std::uint64_t execution_digest() const noexcept = 0;
    /// The same order as values, for Schedule::replay.
    [[nodiscard]] virtual ExecutionRecord execution_record() const = 0;
    /// What became of what CUDA leaves open, in the order in which it came up: whether a pageable
    /// upload had run when its call returned, whether a pool reused memory early. For replay.
    [[nodiscard]] virtual std::vector<bool> chances() const = 0;
    [[nodiscard]] virtual IssuePoint issue_point() const noexcept = 0;
    /// The worst case of Lifetime::occupied over all legal schedules of what was issued so far (see
    /// worst_peak.hpp), at moments from `begin` on. At `begin` only what the host had waited for
    /// has run for sure; so begin = issue_point() gives what may be occupied now. Run to its end,
    /// the same program reaches `bytes` under Schedule::replay of `schedule`.
    ///
    /// Counts what allocations hold, under every AllocationPolicy: not what a pool keeps reserved
    /// beside them. Size::rounded is in regions of 256 B, as under raw.
    ///
    /// Holds for programs that do the same under every schedule. Takes time as the run is long,
    /// also when `begin` is late.
    [[nodiscard]] virtual DevicePeak worst_peak(Size size = Size::requested,
                                                IssuePoint begin = {}) const = 0;
    /// Everything issued since construction and its order, for timeline(); operations are numbered
    /// as in trace(). What the host does itself takes no time there, and comes after what it had
    /// waited for.
    [[nodiscard]] virtual TimedGraph timed_graph() const = 0;
    /// End of use: records leaks, pending work and events that nothing ever waited for as findings.
    /// Nothing may be called afterwards but the const members and deallocations.
    virtual void finish() = 0;
    /// The alias under which the host may read device memory: for tests and reports, never for
    /// product code. All pending work must have run.
    [[nodiscard]] virtual const std::byte* inspect(const void* device_pointer) const = 0;

  protected:
    using Device::Device;
};

[[nodiscard]] std::unique_ptr<SimulatedDevice> make_simulated_device(
    const SimulatedDeviceOptions& options);

}  // namespace swaplab::sim
