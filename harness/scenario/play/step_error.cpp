#include "scenario/play/step_error.hpp"

#include "swaplab/optim/refusal.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

constexpr std::string_view no_memory = "this machine has not enough memory for it";
constexpr std::string_view system_refused = "the system refused";

void add_mismatch(const optim::Mismatch& mismatch, sim::ErrorFields& fields) {
    fields.push_back({"rank", fmt::format("rank {}", mismatch.rank)});
    for (const int lost : mismatch.lost_ranks) {
        fields.push_back({"lost", fmt::format("rank {}", lost)});
    }
    for (const auto& [name, value] :
         {std::pair("parameter", &mismatch.parameter), std::pair("key", &mismatch.key),
          std::pair("expected", &mismatch.expected), std::pair("found", &mismatch.found)}) {
        if (!value->empty()) {
            fields.push_back({name, *value});
        }
    }
}

StepError own_error(const sim::Error& error) {
    StepError out;
    out.kind = std::string(sim::name_of(error.kind()));
    out.fields = error.fields();
    out.text = error.message();
    if (const auto* rejected = dynamic_cast<const optim::CheckpointRejected*>(&error)) {
        for (const optim::Mismatch& mismatch : rejected->mismatches()) {
            add_mismatch(mismatch, out.fields);
        }
    }
    return out;
}

StepError foreign_error(std::string_view reason, int rank, const std::string& operation) {
    return {"",
            {{"operation", operation},
             {"rank", fmt::format("rank {}", rank)},
             {"reason", std::string(reason)}},
            fmt::format("{}: {}", operation, reason)};
}

}  // namespace

StepError step_error(const std::exception_ptr& thrown, int rank, const std::string& operation) {
    try {
        std::rethrow_exception(thrown);
    } catch (const sim::Error& error) {
        return own_error(error);
    } catch (const std::bad_alloc&) {
        return foreign_error(no_memory, rank, operation);
    } catch (const std::system_error& error) {
        return foreign_error(
            fmt::format("{}: {} (error {})", system_refused, error.what(), error.code().value()),
            rank, operation);
    } catch (const std::exception& error) {
        return foreign_error(error.what(), rank, operation);
    } catch (...) {
        return foreign_error("an exception that is no std::exception", rank, operation);
    }
}

bool is_machines_refusal(const StepError& error) {
    const bool own_limit =
        std::any_of(error.fields.begin(), error.fields.end(), [](const sim::ErrorField& field) {
            return field.name == "limit" && field.value == scenarios_own_limit;
        });
    return !own_limit &&
           std::any_of(error.fields.begin(), error.fields.end(), [](const sim::ErrorField& field) {
               return field.name == "reason" &&
                      (field.value == no_memory || field.value == "no space left" ||
                       field.value.starts_with(system_refused));
           });
}

}  // namespace swaplab::harness::scenario
