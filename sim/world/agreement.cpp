#include "swaplab/sim/agreement.hpp"

#include "world/error_message.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace swaplab::sim {
namespace {

/// nullopt: not one of this project's errors.
std::optional<ErrorKind> kind_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const Error& e) {
        return e.kind();
    } catch (...) {
        return std::nullopt;
    }
}

[[noreturn]] void raise_for(int failed_rank, std::string_view operation,
                            const std::exception_ptr& error) {
    const std::string prefix = fmt::format("rank {}, {}: ", failed_rank, operation);
    try {
        std::rethrow_exception(error);
    } catch (const OutOfDeviceMemory&) {
        throw;
    } catch (const Error& e) {
        ErrorFields fields = e.fields();
        fields.push_back({"failed_rank", fmt::format("rank {}", failed_rank)});
        std::rethrow_exception(make_error(e.kind(), prefix + e.message(), std::move(fields)));
    } catch (const std::exception& e) {
        throw std::runtime_error(prefix + e.what());
    }
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
    const std::string mine =
        error ? encode_error(error, std::numeric_limits<std::size_t>::max()) : std::string();
    if (SWAPLAB_MUTANT("agree.own_outcome_only")) {
        if (error) {
            std::rethrow_exception(error);
        }
        return;
    }
    const std::vector<std::string> outcomes = communicator.all_gather_object(mine, operation, site);
    for (int rank = 0; rank < communicator.size(); ++rank) {
        const std::string& outcome = outcomes[static_cast<std::size_t>(rank)];
        if (outcome.empty()) {
            continue;
        }
        const std::exception_ptr theirs = decode_error(outcome);
        if (error && kind_of(theirs) == kind_of(error)) {
            std::rethrow_exception(error);
        }
        raise_for(rank, operation, theirs);
    }
}

void rethrow_with_note(const std::exception_ptr& error, std::string_view note) {
    try {
        std::rethrow_exception(error);
    } catch (const Error& e) {
        if (e.kind() != ErrorKind::out_of_memory && e.kind() != ErrorKind::rejected) {
            std::rethrow_exception(
                make_error(e.kind(), fmt::format("{}\n{}", e.message(), note), e.fields()));
        }
        throw;
    } catch (const std::exception& e) {
        throw std::runtime_error(fmt::format("{}\n{}", e.what(), note));
    }
}

}  // namespace swaplab::sim
