#pragma once

/// The exception hierarchy of all three modules.
///
/// Three kinds of failure exist. Programmer errors abort (assert.hpp). Expected refusals are values
/// first (lists of mismatches) and become one exception at the border. Operating failures throw one
/// of the classes below. Each derives from the matching std:: type *and* from Error, so that
/// callers may catch either; each carries what happened as fields, and what() is text made from
/// them, never the other way round.

#include "swaplab/sim/call_site.hpp"

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::sim {

/// The words by which scenario files and reports name a kind of failure.
enum class ErrorKind : std::uint8_t {
    rejected,
    corrupt,
    torn,
    out_of_memory,
    storage,
    rank_lost,
    collective_mismatch,
    deadline,
    device,
    argument,
};

/// "rejected", "out_of_memory", ...
[[nodiscard]] std::string_view name_of(ErrorKind kind) noexcept;

/// One fact of an error: name "parameter", value "a"; name "saved_shape", value "[6,2]".
/// Ranks are values like "rank 0". A name may occur several times.
struct ErrorField {
    std::string name;
    std::string value;
    friend bool operator==(const ErrorField&, const ErrorField&) = default;
};

using ErrorFields = std::vector<ErrorField>;

/// What every exception of this project offers beside its std:: base.
class Error {
  public:
    virtual ~Error() = default;
    [[nodiscard]] virtual ErrorKind kind() const noexcept = 0;
    [[nodiscard]] virtual const ErrorFields& fields() const noexcept = 0;
    /// The same text as what().
    [[nodiscard]] virtual const char* message() const noexcept = 0;

  protected:
    Error() = default;
    Error(const Error&) = default;
    Error& operator=(const Error&) = default;
};

/// An Error of kind `Kind` on the std:: type `StdBase`, which is constructible from a std::string.
template <ErrorKind Kind, class StdBase>
class BasicError : public StdBase, public Error {
  public:
    explicit BasicError(const std::string& text, ErrorFields error_fields = {})
        : StdBase(text), fields_(std::move(error_fields)) {}

    [[nodiscard]] ErrorKind kind() const noexcept override { return Kind; }
    [[nodiscard]] const ErrorFields& fields() const noexcept override { return fields_; }
    [[nodiscard]] const char* message() const noexcept override { return this->what(); }

  private:
    ErrorFields fields_;
};

/// A device call failed for a reason other than memory. The device may be unusable afterwards.
using DeviceError = BasicError<ErrorKind::device, std::runtime_error>;
/// Work failed as it ran, behind the back of the call that issued it. Sticky: the device is of no
/// use any more, and every later call throws it, too. Fields: operation and site of the call that
/// reports; origin, origin_site and reason of the work that failed.
class DeviceLost : public DeviceError {
    using DeviceError::DeviceError;
};
/// A caller handed in something that can never work (unknown name, wrong dtype, empty world).
using ArgumentError = BasicError<ErrorKind::argument, std::invalid_argument>;
/// Another rank ended (threw, was killed, returned early) while this one waited for it.
using RankLost = BasicError<ErrorKind::rank_lost, std::runtime_error>;
/// Ranks called different collectives, or the same one with different arguments.
using CollectiveMismatch = BasicError<ErrorKind::collective_mismatch, std::logic_error>;
/// A bounded wait ended without the awaited thing.
using DeadlineExceeded = BasicError<ErrorKind::deadline, std::runtime_error>;
/// A file operation failed (missing, unreadable, full disk). Fields: operation, file, reason.
using StorageError = BasicError<ErrorKind::storage, std::runtime_error>;

/// One live allocation, or all of one tag, as named in an out-of-memory report.
struct Holder {
    std::string tag;
    std::uint64_t requested_bytes = 0;
    std::uint64_t rounded_bytes = 0;
    CallSite site;            ///< of one allocation
    std::uint64_t count = 1;  ///< of allocations
};

/// The request did not fit; nothing was allocated and nothing changed. Not sticky.
class OutOfDeviceMemory : public std::bad_alloc, public Error {
  public:
    struct Report {
        int rank = 0;
        std::string tag;                    ///< what was asked for
        std::uint64_t requested_bytes = 0;  ///< as asked
        std::uint64_t rounded_bytes = 0;    ///< as it would be charged
        std::uint64_t charged_bytes = 0;    ///< rounded bytes in use at that moment
        std::uint64_t capacity_bytes = 0;
        std::uint64_t context_bytes = 0;  ///< of the capacity; nobody's to have
        std::vector<Holder> holders;      ///< largest first; ties by tag; at most 10
        /// sums per tag, largest first; together all bytes in use
        std::vector<Holder> by_tag;
        CallSite site;
        /// The largest piece that the request could have had, as rounded; at most what is free.
        std::uint64_t largest_hole_bytes = 0;
        /// Given back, while work that may use it has not run; free already in charged_bytes.
        std::uint64_t pending_bytes = 0;
        /// Whether the request would have fitted once that work has run.
        bool waiting_suffices = false;
        /// Held by the allocator, charged or not; 0: what is charged.
        std::uint64_t reserved_bytes = 0;
        std::string memory = "device";  ///< or "pinned", "host": then capacity is the quota

        [[nodiscard]] std::uint64_t free_bytes() const noexcept {
            return capacity_bytes - context_bytes -
                   (reserved_bytes > 0 ? reserved_bytes : charged_bytes);
        }
    };

    explicit OutOfDeviceMemory(Report report);

    [[nodiscard]] const Report& report() const noexcept { return report_; }
    [[nodiscard]] const std::vector<Holder>& holders() const noexcept { return report_.holders; }
    [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
    [[nodiscard]] ErrorKind kind() const noexcept override { return ErrorKind::out_of_memory; }
    [[nodiscard]] const ErrorFields& fields() const noexcept override { return fields_; }
    [[nodiscard]] const char* message() const noexcept override { return text_.c_str(); }

  private:
    Report report_;
    ErrorFields fields_;
    std::string text_;
};

}  // namespace swaplab::sim
