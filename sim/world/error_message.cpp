#include "world/error_message.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/message.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

namespace swaplab::sim {
namespace {

enum class Form : std::uint64_t { error, out_of_memory, foreign };

void put_holders(Message& message, const std::vector<Holder>& holders) {
    message.put(std::uint64_t{holders.size()});
    for (const Holder& holder : holders) {
        message.put(holder.tag);
        message.put(holder.requested_bytes);
        message.put(holder.rounded_bytes);
        message.put(holder.count);
    }
}

std::vector<Holder> take_holders(Message& message) {
    std::vector<Holder> holders(message.number());
    for (Holder& holder : holders) {
        holder.tag = message.text();
        holder.requested_bytes = message.number();
        holder.rounded_bytes = message.number();
        holder.count = message.number();
    }
    return holders;
}

std::string encode(const OutOfDeviceMemory::Report& report) {
    Message message;
    message.put(static_cast<std::uint64_t>(Form::out_of_memory));
    message.put(static_cast<std::uint64_t>(report.rank));
    message.put(report.tag);
    message.put(report.requested_bytes);
    message.put(report.rounded_bytes);
    message.put(report.charged_bytes);
    message.put(report.capacity_bytes);
    message.put(report.context_bytes);
    message.put(report.largest_hole_bytes);
    message.put(report.pending_bytes);
    message.put(std::uint64_t{report.waiting_suffices});
    message.put(report.reserved_bytes);
    message.put(report.memory);
    put_holders(message, report.holders);
    put_holders(message, report.by_tag);
    return message.bytes();
}

OutOfDeviceMemory::Report take_report(Message& message) {
    OutOfDeviceMemory::Report report;
    report.rank = static_cast<int>(message.number());
    report.tag = message.text();
    report.requested_bytes = message.number();
    report.rounded_bytes = message.number();
    report.charged_bytes = message.number();
    report.capacity_bytes = message.number();
    report.context_bytes = message.number();
    report.largest_hole_bytes = message.number();
    report.pending_bytes = message.number();
    report.waiting_suffices = message.number() != 0;
    report.reserved_bytes = message.number();
    report.memory = message.text();
    report.holders = take_holders(message);
    report.by_tag = take_holders(message);
    return report;
}

std::string encode(ErrorKind kind, const std::string& text, const ErrorFields& fields) {
    Message message;
    message.put(static_cast<std::uint64_t>(Form::error));
    message.put(static_cast<std::uint64_t>(kind));
    message.put(text);
    message.put(std::uint64_t{fields.size()});
    for (const ErrorField& field : fields) {
        message.put(field.name);
        message.put(field.value);
    }
    return message.bytes();
}

std::string encode_foreign(const std::string& text) {
    Message message;
    message.put(static_cast<std::uint64_t>(Form::foreign));
    message.put(text);
    return message.bytes();
}

/// Shortens by `shorten()` until it fits.
template <class Encode, class Shorten>
std::string fitting(std::size_t bytes_max, Encode encoded, Shorten shorten) {
    std::string bytes = encoded();
    while (bytes.size() > bytes_max) {
        shorten(bytes.size() - bytes_max);
        bytes = encoded();
    }
    return bytes;
}

void cut(std::string& text, std::size_t bytes) {
    text.resize(text.size() - std::min(text.size(), bytes));
}

std::string encode_fitting(OutOfDeviceMemory::Report report, std::size_t bytes_max) {
    return fitting(
        bytes_max, [&] { return encode(report); },
        [&](std::size_t excess) {
            std::vector<Holder>& last = report.by_tag.empty() ? report.holders : report.by_tag;
            last.empty() ? cut(report.tag, excess) : last.pop_back();
        });
}

template <ErrorKind Kind, class StdBase>
std::exception_ptr make(const std::string& text, ErrorFields fields) {
    return std::make_exception_ptr(BasicError<Kind, StdBase>(text, std::move(fields)));
}

}  // namespace

std::exception_ptr make_error(ErrorKind kind, const std::string& text, ErrorFields fields) {
    using K = ErrorKind;
    switch (kind) {
        case K::rejected:
            return make<K::rejected, std::runtime_error>(text, std::move(fields));
        case K::corrupt:
            return make<K::corrupt, std::runtime_error>(text, std::move(fields));
        case K::torn:
            return make<K::torn, std::runtime_error>(text, std::move(fields));
        case K::storage:
            return make<K::storage, std::runtime_error>(text, std::move(fields));
        case K::rank_lost:
            return make<K::rank_lost, std::runtime_error>(text, std::move(fields));
        case K::collective_mismatch:
            return make<K::collective_mismatch, std::logic_error>(text, std::move(fields));
        case K::deadline:
            return make<K::deadline, std::runtime_error>(text, std::move(fields));
        case K::device:
        case K::out_of_memory:
            return make<K::device, std::runtime_error>(text, std::move(fields));
        case K::argument:
            break;
    }
    return make<K::argument, std::invalid_argument>(text, std::move(fields));
}

std::string encode_error(const std::exception_ptr& error, std::size_t bytes_max) {
    try {
        std::rethrow_exception(error);
    } catch (const OutOfDeviceMemory& memory) {
        return encode_fitting(memory.report(), bytes_max);
    } catch (const Error& e) {
        std::string text = e.message();
        ErrorFields fields = e.fields();
        return fitting(
            bytes_max, [&] { return encode(e.kind(), text, fields); },
            [&](std::size_t excess) { fields.empty() ? cut(text, excess) : fields.pop_back(); });
    } catch (const std::bad_alloc&) {
        return encode_foreign("this machine has not enough memory");
    } catch (const std::exception& e) {
        std::string text = e.what();
        return fitting(
            bytes_max, [&] { return encode_foreign(text); },
            [&](std::size_t excess) { cut(text, excess); });
    } catch (...) {
        return encode_foreign("an exception that is not a std::exception");
    }
}

std::exception_ptr decode_error(std::string_view encoded) {
    Message message{std::string(encoded)};
    const auto form = static_cast<Form>(message.number());
    if (form == Form::foreign) {
        return std::make_exception_ptr(std::runtime_error(message.text()));
    }
    if (form == Form::out_of_memory) {
        return std::make_exception_ptr(OutOfDeviceMemory(take_report(message)));
    }
    const auto kind = static_cast<ErrorKind>(message.number());
    const std::string text = message.text();
    ErrorFields fields(message.number());
    for (ErrorField& field : fields) {
        field.name = message.text();
        field.value = message.text();
    }
    return make_error(kind, text, std::move(fields));
}

}  // namespace swaplab::sim
