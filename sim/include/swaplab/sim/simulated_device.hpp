#pragma once

/// The simulated accelerator: real bytes, exact accounting, deferred execution, findings.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "swaplab/sim/device.hpp"
#include "swaplab/sim/error.hpp"

namespace swaplab::sim {

/// Which of the operations that may legally run next does run.
/// fifo: in issue order. random: seeded choice. latest: adversarial, as late as order allows: a
/// stream advances only when something that somebody waits for needs it, youngest issue first.
enum class Schedule : std::uint8_t { fifo, random, latest };

[[nodiscard]] std::string_view name_of(Schedule schedule) noexcept;
[[nodiscard]] std::optional<Schedule> schedule_from_name(std::string_view name) noexcept;

enum class FindingKind : std::uint8_t {
    race, leak, pending_work, unwaited_event, host_touch, host_pointer, use_after_free,
    in_flight_reuse, uninitialised,
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
    std::string operation;    ///< "allocate", "copy h2d", "launch adamw", "host write", ...
    std::string stream;       ///< name given to create_stream, or empty
    std::string tag;          ///< memory concerned (of a copy: host side or destination), or empty
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
    CopyDirection direction{};  ///< meaningful for copies only
    friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

struct SimulatedDeviceOptions {
    int rank = 0;
    std::uint64_t capacity_bytes = std::uint64_t{1} << 30U;
    Schedule schedule = Schedule::fifo;
    std::uint64_t seed = 1;  ///< the device uses hash_mix(seed, rank)
};

/// A Device that runs on the host.
///
/// Operations are queued when called and run later, when the schedule picks them: while the host
/// waits (synchronize, query), never behind its back. Data moves when the operation runs. Device
/// memory is a memfd mapped twice at a constant distance: the address handed out is PROT_NONE, so a
/// host access traps (finding host_touch; the rank ends), the alias is used by the executor.
/// Fresh and freed device memory is filled with poison patterns.
class SimulatedDevice : public Device {
  public:
    /// Findings so far, in order of discovery.
    [[nodiscard]] virtual const std::vector<Finding>& findings() const noexcept = 0;
    /// Everything issued since construction, in issue order.
    [[nodiscard]] virtual const std::vector<TraceEvent>& trace() const noexcept = 0;
    /// Digest of the order in which operations ran; equal for equal seeds.
    [[nodiscard]] virtual std::uint64_t execution_digest() const noexcept = 0;
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
