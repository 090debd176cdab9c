/// The file: a magic word, a version, then numbers of 7 bits per byte, lowest first, the last one
/// below 128; texts as their length and their bytes; at the end 8 bytes of digest of all before.

#include "swaplab/sim/device_trace.hpp"
#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace swaplab::sim {
namespace {

constexpr std::string_view magic = "swaplab trace\n";
constexpr std::uint64_t version = 3;
constexpr std::size_t digest_bytes = 8;
/// More than any machine can address: sums of two never run over.
constexpr std::uint64_t memory_bytes_max = std::uint64_t{1} << 47U;

std::uint64_t digest_of(std::span<const std::byte> bytes) {
    RollingDigest digest;
    digest.add(bytes);
    return digest.value();
}

class Writer {
  public:
    void number(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7U) {
            bytes_.push_back(static_cast<std::byte>(value | 0x80U));
        }
        bytes_.push_back(static_cast<std::byte>(value));
    }
    void raw(std::uint64_t value) {
        for (unsigned shift = 0; shift < 64; shift += 8) {
            bytes_.push_back(static_cast<std::byte>(value >> shift));
        }
    }
    void plain(std::string_view text) {
        const auto all = std::as_bytes(std::span(text.data(), text.size()));
        bytes_.insert(bytes_.end(), all.begin(), all.end());
    }
    void text(std::string_view text) {
        number(text.size());
        plain(text);
    }
    template <class T, class Write>
    void list(const std::vector<T>& items, Write write) {
        number(items.size());
        for (const T& item : items) {
            write(item);
        }
    }
    [[nodiscard]] std::vector<std::byte> finish() && {
        raw(digest_of(bytes_));
        return std::move(bytes_);
    }

  private:
    std::vector<std::byte> bytes_;
};

class Reader {
  public:
    explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    [[nodiscard]] std::uint64_t number(
        std::string_view what, std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto part = std::to_integer<std::uint64_t>(take(1, what).front());
            const bool fits = shift < 63 || (shift == 63 && (part & 0x7fU) <= 1);
            if (!fits) {
                refuse(fmt::format("{} is a number of more than 64 bits", what));
            }
            value |= (part & 0x7fU) << shift;
            if (part < 0x80) {
                break;
            }
        }
        if (value > most && !SWAPLAB_MUTANT("trace.number_unchecked")) {
            refuse(fmt::format("{} is {}; at most {}", what, value, most));
        }
        return value;
    }
    [[nodiscard]] bool flag(std::string_view what) { return number(what, 1) == 1; }
    [[nodiscard]] std::uint64_t raw(std::string_view what) {
        std::uint64_t value = 0;
        unsigned shift = 0;
        for (const std::byte part : take(8, what)) {
            value |= std::to_integer<std::uint64_t>(part) << shift;
            shift += 8;
        }
        return value;
    }
    [[nodiscard]] std::string text(std::string_view what) {
        const auto bytes = take(number(what), what);
        std::string out(bytes.size(), '\0');
        std::transform(bytes.begin(), bytes.end(), out.begin(),
                       [](std::byte byte) { return static_cast<char>(byte); });
        return out;
    }
    /// Each item takes a byte at least, so no list is longer than what is left.
    template <class Read>
    [[nodiscard]] auto list(std::string_view what, Read read) {
        std::vector<decltype(read())> out;
        for (std::uint64_t rest = number(what, left()); rest > 0; --rest) {
            out.push_back(read());
        }
        return out;
    }
    [[nodiscard]] std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
        if (count > left()) {
            refuse(fmt::format("it ends inside {}", what));
        }
        const auto out = bytes_.subspan(at_, count);
        at_ += count;
        return out;
    }
    [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - at_; }
    [[noreturn]] void refuse(const std::string& reason) const {
        throw ArgumentError(
            fmt::format("no readable trace: at byte {}, {}; record it again", at_, reason),
            {{"operation", "read trace"},
             {"reason", reason},
             {"offset_bytes", std::to_string(at_)}});
    }

  private:
    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
};

constexpr std::uint64_t schedule_max = static_cast<std::uint64_t>(Schedule::chosen);
constexpr std::uint64_t allocation_max =
    static_cast<std::uint64_t>(AllocationPolicy::stream_ordered);
constexpr std::uint64_t pinned_max = static_cast<std::uint64_t>(PinnedPolicy::power_of_two);

void put_options(Writer& out, const SimulatedDeviceOptions& options) {
    out.number(static_cast<std::uint64_t>(options.rank));
    out.number(options.capacity_bytes);
    out.number(options.context_bytes);
    out.number(static_cast<std::uint64_t>(options.schedule));
    out.number(options.seed);
    out.number(options.pct_depth);
    out.number(options.pct_operations);
    out.number(options.check_accesses ? 1 : 0);
    out.number(options.poison ? 1 : 0);
    out.number(static_cast<std::uint64_t>(options.allocation));
    out.number(options.release_threshold_bytes);
    out.number(static_cast<std::uint64_t>(options.pinned));
    out.number(options.pinned_quota_bytes);
    out.list(options.record, [&](const ExecutedOperation& each) {
        out.number(each.operation);
        out.raw(each.digest);
    });
    out.list(options.chances, [&](bool chance) { out.number(chance ? 1U : 0U); });
}

SimulatedDeviceOptions get_options(Reader& in) {
    SimulatedDeviceOptions options;
    options.rank = static_cast<int>(in.number("the rank", std::numeric_limits<int>::max()));
    options.capacity_bytes = in.number("the capacity", memory_bytes_max);
    options.context_bytes = in.number("the context", memory_bytes_max);
    options.schedule = static_cast<Schedule>(in.number("the schedule", schedule_max));
    options.seed = in.number("the seed");
    options.pct_depth = in.number("the depth");
    options.pct_operations = in.number("the operations");
    options.check_accesses = in.flag("check_accesses");
    options.poison = in.flag("poison");
    options.allocation =
        static_cast<AllocationPolicy>(in.number("the allocation policy", allocation_max));
    options.release_threshold_bytes = in.number("the release threshold");
    options.pinned = static_cast<PinnedPolicy>(in.number("the pinned policy", pinned_max));
    options.pinned_quota_bytes = in.number("the pinned quota");
    options.record = in.list("the execution order", [&] {
        const std::uint64_t operation = in.number("an operation");
        return ExecutedOperation{operation, in.raw("a digest")};
    });
    options.chances = in.list("the chances", [&] { return in.flag("a chance"); });
    return options;
}

/// none is 0, so that it takes one byte.
std::uint64_t shifted(std::uint32_t number) {
    return number == DeviceCall::none ? 0 : number + 1U;
}

void put_call(Writer& out, const DeviceCall& call) {
    const auto ranges = [&](const std::vector<DeviceCall::Range>& all) {
        out.list(all, [&](const DeviceCall::Range& range) {
            out.number(shifted(range.memory));
            out.number(range.offset_bytes);
            out.number(range.bytes);
        });
    };
    out.number(static_cast<std::uint64_t>(call.kind));
    out.number((call.refused ? 1U : 0U) | (call.failed ? 2U : 0U));
    out.number(call.variant);
    out.number(call.name);
    out.number(call.file);
    out.number(call.line);
    out.number(shifted(call.stream));
    out.number(shifted(call.event));
    ranges(call.reads);
    ranges(call.writes);
}

/// Reads calls and keeps count of what they make, so that none names what is not there.
class CallReader {
  public:
    CallReader(Reader& in, std::size_t names) : in_(in), names_(names) {}

    DeviceCall operator()() {
        DeviceCall call;
        call.kind = static_cast<CallKind>(in_.number("the kind of a call", call_kind_count - 1));
        const std::uint64_t ends = in_.number("the end of a call", 3);
        call.refused = (ends & 1U) != 0;
        call.failed = (ends & 2U) != 0;
        call.variant = static_cast<std::uint8_t>(in_.number("a variant", variant_max(call.kind)));
        call.name = name("a name");
        call.file = name("a file");
        call.line =
            static_cast<std::uint32_t>(in_.number("a line", std::numeric_limits<int>::max()));
        const bool made = !call.refused;
        const bool stream =
            call.kind == CallKind::create_stream || call.kind == CallKind::default_stream;
        const bool event = call.kind == CallKind::create_event;
        const bool memory =
            call.kind == CallKind::allocate || call.kind == CallKind::allocate_pinned;
        call.stream = known("a stream", streams_, stream);
        call.event = known("an event", events_, event);
        call.reads = ranges(memory);
        call.writes = ranges(memory);
        const bool in_order =
            (!stream || call.stream == streams_) && (!event || call.event == events_) &&
            (!memory || (call.writes.size() == 1 && call.writes.front().memory == memory_));
        if (!in_order) {
            in_.refuse("a call makes something other than the next of its kind");
        }
        streams_ += stream && made ? 1 : 0;
        events_ += event && made ? 1 : 0;
        memory_ += memory && made ? 1 : 0;
        return call;
    }

  private:
    static std::uint64_t variant_max(CallKind kind) {
        switch (kind) {
            case CallKind::allocate:
                return 1;
            case CallKind::create_stream:
                return static_cast<std::uint64_t>(StreamKind::non_blocking);
            case CallKind::copy:
            case CallKind::copy_pageable:
                return static_cast<std::uint64_t>(CopyDirection::device_to_device);
            case CallKind::fill:
                return 0xff;
            default:
                return 0;
        }
    }
    std::uint32_t name(std::string_view what) {
        if (names_ == 0) {
            in_.refuse("there are calls and no names");
        }
        return static_cast<std::uint32_t>(in_.number(what, names_ - 1));
    }
    /// One of `count`, the next one if this call makes it, or none.
    std::uint32_t known(std::string_view what, std::uint64_t count, bool makes) {
        return static_cast<std::uint32_t>(in_.number(what, count + (makes ? 1 : 0))) - 1U;
    }
    std::vector<DeviceCall::Range> ranges(bool makes) {
        return in_.list("the ranges of a call", [&] {
            DeviceCall::Range range;
            range.memory = known("a memory", memory_, makes);
            range.offset_bytes = in_.number("an offset", memory_bytes_max);
            range.bytes = in_.number("a size", memory_bytes_max);
            return range;
        });
    }

    Reader& in_;
    std::uint64_t names_;
    std::uint64_t streams_ = 0;
    std::uint64_t events_ = 0;
    std::uint64_t memory_ = 0;
};

void check_frame(std::span<const std::byte> bytes) {
    Reader in(bytes);
    const auto word = in.take(magic.size(), "its first line");
    if (!std::equal(word.begin(), word.end(), std::as_bytes(std::span(magic)).begin())) {
        Reader(bytes).refuse("it does not begin with \"swaplab trace\"");
    }
    if (const std::uint64_t found = in.number("the version"); found != version) {
        in.refuse(fmt::format("version {} is not {}, which this program reads", found, version));
    }
    if (in.left() < digest_bytes) {
        in.refuse("it ends before its digest");
    }
    const auto body = bytes.first(bytes.size() - digest_bytes);
    Reader end(bytes.last(digest_bytes));
    if (end.raw("the digest") != digest_of(body) && !SWAPLAB_MUTANT("trace.digest_unchecked")) {
        in.refuse("its bytes are not those that were written (the digest differs)");
    }
}

}  // namespace

std::vector<std::byte> encode(const DeviceTrace& trace) {
    Writer out;
    out.plain(magic);
    out.number(version);
    put_options(out, trace.options);
    out.list(trace.program.names, [&](const std::string& name) { out.text(name); });
    out.list(trace.program.calls, [&](const DeviceCall& call) { put_call(out, call); });
    out.raw(trace.digest);
    return std::move(out).finish();
}

DeviceTrace decode_trace(std::span<const std::byte> bytes) {
    check_frame(bytes);
    Reader in(bytes.first(bytes.size() - digest_bytes));
    static_cast<void>(in.take(magic.size(), "its first line"));
    static_cast<void>(in.number("the version"));
    DeviceTrace trace;
    trace.options = get_options(in);
    trace.program.names = in.list("the names", [&] { return in.text("a name"); });
    CallReader call(in, trace.program.names.size());
    trace.program.calls = in.list("the calls", [&] { return call(); });
    trace.digest = in.raw("the digest of the run");
    if (in.left() != 0) {
        in.refuse(fmt::format("{} bytes come after its end", in.left()));
    }
    return trace;
}

}  // namespace swaplab::sim
