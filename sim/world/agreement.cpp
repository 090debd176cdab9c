#include "swaplab/sim/agreement.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/message.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <exception>
#include <string>

namespace swaplab::sim {
namespace {

/// How one rank's work ended.
enum class Outcome : std::uint64_t { done, error, foreign };

void put_holders(Message& message, const std::vector<Holder>& holders) {
    message.put(std::uint64_t{holders.size()});
    for (const Holder& holder : holders) {
        message.put(holder.tag);
        message.put(holder.requested_bytes);
        message.put(holder.rounded_bytes);
    }
}

std::vector<Holder> take_holders(Message& message) {
    std::vector<Holder> holders(message.number());
    for (Holder& holder : holders) {
        holder.tag = message.text();
        holder.requested_bytes = message.number();
        holder.rounded_bytes = message.number();
    }
    return holders;
}

void put_report(Message& message, const OutOfDeviceMemory::Report& report) {
    message.put(static_cast<std::uint64_t>(report.rank));
    message.put(report.tag);
    message.put(report.requested_bytes);
    message.put(report.rounded_bytes);
    message.put(report.charged_bytes);
    message.put(report.capacity_bytes);
    put_holders(message, report.holders);
    put_holders(message, report.by_tag);
}

OutOfDeviceMemory::Report take_report(Message& message) {
    OutOfDeviceMemory::Report report;
    report.rank = static_cast<int>(message.number());
    report.tag = message.text();
    report.requested_bytes = message.number();
    report.rounded_bytes = message.number();
    report.charged_bytes = message.number();
    report.capacity_bytes = message.number();
    report.holders = take_holders(message);
    report.by_tag = take_holders(message);
    return report;
}

std::string describe(const std::exception_ptr& error) {
    Message message;
    try {
        std::rethrow_exception(error);
    } catch (const Error& e) {
        message.put(static_cast<std::uint64_t>(Outcome::error));
        message.put(static_cast<std::uint64_t>(e.kind()));
        message.put(e.message());
        message.put(std::uint64_t{e.fields().size()});
        for (const ErrorField& field : e.fields()) {
            message.put(field.name);
            message.put(field.value);
        }
        if (const auto* memory = dynamic_cast<const OutOfDeviceMemory*>(&e)) {
            put_report(message, memory->report());
        }
    } catch (const std::exception& e) {
        message.put(static_cast<std::uint64_t>(Outcome::foreign));
        message.put(e.what());
    } catch (...) {
        message.put(static_cast<std::uint64_t>(Outcome::foreign));
        message.put("an exception that is not a std::exception");
    }
    return message.bytes();
}

template <ErrorKind Kind, class StdBase>
[[noreturn]] void raise(const std::string& text, ErrorFields fields) {
    throw BasicError<Kind, StdBase>(text, std::move(fields));
}

/// Any kind but out_of_memory, which has a class of its own.
[[noreturn]] void raise(ErrorKind kind, const std::string& text, ErrorFields fields) {
    using K = ErrorKind;
    switch (kind) {
        case K::rejected:
            raise<K::rejected, std::runtime_error>(text, std::move(fields));
        case K::corrupt:
            raise<K::corrupt, std::runtime_error>(text, std::move(fields));
        case K::torn:
            raise<K::torn, std::runtime_error>(text, std::move(fields));
        case K::storage:
            raise<K::storage, std::runtime_error>(text, std::move(fields));
        case K::rank_lost:
            raise<K::rank_lost, std::runtime_error>(text, std::move(fields));
        case K::collective_mismatch:
            raise<K::collective_mismatch, std::logic_error>(text, std::move(fields));
        case K::deadline:
            raise<K::deadline, std::runtime_error>(text, std::move(fields));
        case K::device:
        case K::out_of_memory:
            raise<K::device, std::runtime_error>(text, std::move(fields));
        case K::argument:
            break;
    }
    raise<K::argument, std::invalid_argument>(text, std::move(fields));
}

[[noreturn]] void raise_for(int failed_rank, std::string_view operation, Message message) {
    const std::string prefix = fmt::format("rank {}, {}: ", failed_rank, operation);
    if (static_cast<Outcome>(message.number()) == Outcome::foreign) {
        throw std::runtime_error(prefix + message.text());
    }
    const auto kind = static_cast<ErrorKind>(message.number());
    const std::string text = prefix + message.text();
    ErrorFields fields(message.number());
    for (ErrorField& field : fields) {
        field.name = message.text();
        field.value = message.text();
    }
    if (kind == ErrorKind::out_of_memory) {
        throw OutOfDeviceMemory(take_report(message));
    }
    fields.push_back({"failed_rank", fmt::format("rank {}", failed_rank)});
    raise(kind, text, std::move(fields));
}

/// The outcome and, for an Error, its kind: what must be equal on all ranks in the end.
std::pair<std::uint64_t, std::uint64_t> kind_of(const std::string& outcome) {
    Message message(outcome);
    const std::uint64_t first = message.number();
    const bool is_error = first == static_cast<std::uint64_t>(Outcome::error);
    return {first, is_error ? message.number() : 0};
}

}  // namespace

void agree(Communicator& communicator, std::string_view operation,
           const std::function<void()>& work, CallSite site) {
    std::exception_ptr error;
    try {
        work();
    } catch (...) {
        error = std::current_exception();
    }
    Message done;
    done.put(static_cast<std::uint64_t>(Outcome::done));
    const std::string mine = error ? describe(error) : done.bytes();
    if (SWAPLAB_MUTANT("agree.own_outcome_only")) {
        if (error) {
            std::rethrow_exception(error);
        }
        return;
    }
    const std::vector<std::string> outcomes = communicator.all_gather_object(mine, site);
    for (int rank = 0; rank < communicator.size(); ++rank) {
        const std::string& outcome = outcomes[static_cast<std::size_t>(rank)];
        if (outcome == done.bytes()) {
            continue;
        }
        if (error && kind_of(outcome) == kind_of(mine)) {
            std::rethrow_exception(error);
        }
        raise_for(rank, operation, Message(outcome));
    }
}

void rethrow_with_note(const std::exception_ptr& error, std::string_view note) {
    try {
        std::rethrow_exception(error);
    } catch (const Error& e) {
        if (e.kind() != ErrorKind::out_of_memory && e.kind() != ErrorKind::rejected) {
            raise(e.kind(), fmt::format("{}\n{}", e.message(), note), e.fields());
        }
        throw;
    } catch (const std::exception& e) {
        throw std::runtime_error(fmt::format("{}\n{}", e.what(), note));
    }
}

}  // namespace swaplab::sim
