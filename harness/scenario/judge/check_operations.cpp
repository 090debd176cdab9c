// Verdicts on where moments are and on the operations of a step.

#include "scenario/judge/check_judge.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness::scenario {
namespace {

/// Operations with the name of the checkpoint taken out, so that two of them compare.
std::vector<StorageOperation> comparable(std::vector<StorageOperation> operations) {
    for (StorageOperation& operation : operations) {
        for (std::string* path : {&operation.path, &operation.other_path}) {
            const std::size_t slash = path->find('/');
            const std::string first = path->substr(0, slash);
            const std::size_t suffix = first.rfind(".incomplete");
            *path = (suffix == std::string::npos ? "*" : "*.incomplete") +
                    (slash == std::string::npos ? "" : path->substr(slash));
        }
    }
    return operations;
}

std::string text_of(const sim::TraceEvent& event) {
    return fmt::format("{} {}{} [{}:{}]", event.operation, event.tag,
                       event.stream.empty() ? "" : " on " + event.stream, event.offset_bytes,
                       event.offset_bytes + event.bytes);
}

std::string text_of(const StorageOperation& operation) {
    return fmt::format("{} {} [{}:{}]", operation.operation, operation.path, operation.offset_bytes,
                       operation.offset_bytes + operation.bytes);
}

/// "operation 3: expected X, found Y", or empty when the sequences are equal.
template <class Operation>
std::string first_other(const std::vector<Operation>& found,
                        const std::vector<Operation>& expected) {
    for (std::size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
        const bool both = i < found.size() && i < expected.size();
        if (!both || !(found[i] == expected[i])) {
            return fmt::format("operation {}: expected {}, found {}", i,
                               i < expected.size() ? text_of(expected[i]) : "the end",
                               i < found.size() ? text_of(found[i]) : "the end");
        }
    }
    return "";
}

/// Where moments are: the choice and the comparison of `buffers`.
struct BufferCount {
    std::int64_t looked_at = 0;
    std::int64_t other = 0;
    std::string first_other;
};

bool has(const std::vector<std::string>& list, const std::string& one) {
    return std::find(list.begin(), list.end(), one) != list.end();
}

const CapturedTensor* tensor_in(const StepRecord& record, const std::string& name,
                                const std::string& key) {
    const auto& state = record.after.views[static_cast<std::size_t>(View::step)].state;
    const auto found = state.find(name);
    const auto tensor =
        found != state.end() ? found->second.find(key) : CapturedKeys::const_iterator{};
    return found != state.end() && tensor != found->second.end() ? &tensor->second : nullptr;
}

/// `is_same(name, key, tensor)` says whether a moment is where it is expected.
template <class IsSame>
void count_buffers(const StepRecord& record, std::size_t rank, const Selectors& select,
                   const IsSame& is_same, BufferCount& count) {
    const auto& view = record.after.views[static_cast<std::size_t>(View::step)];
    for (const auto& [name, keys] : view.state) {
        for (const auto& [key, tensor] : keys) {
            const bool wanted = select.keys.empty() ? key != "step" : has(select.keys, key);
            if (!wanted || (!select.of.empty() && !has(select.of, name)) || tensor.bytes.empty()) {
                continue;
            }
            ++count.looked_at;
            if (is_same(name, key, tensor)) {
                continue;
            }
            ++count.other;
            if (count.first_other.empty()) {
                count.first_other = fmt::format("rank {}: {}.{} in {} memory", rank, name, key,
                                                sim::name_of(tensor.memory));
            }
        }
    }
}

}  // namespace

void CheckJudge::buffers() {
    const bool by_kind = expectation_.relation == Relation::equals;
    const auto* reference = by_kind ? nullptr : reference_ranks();
    if (!by_kind && reference == nullptr) {
        return;
    }
    BufferCount count;
    for (std::size_t rank = 0; rank < ranks().size(); ++rank) {
        const auto is_same = [&](const std::string& name, const std::string& key,
                                 const CapturedTensor& tensor) {
            if (by_kind) {
                return has(expectation_.names, std::string(sim::name_of(tensor.memory)));
            }
            const CapturedTensor* there =
                rank < reference->size() ? tensor_in((*reference)[rank], name, key) : nullptr;
            return there != nullptr && there->address == tensor.address;
        };
        count_buffers(ranks()[rank], rank, expectation_.select, is_same, count);
    }
    check_.measured = count.other;
    check_.unit = "buffers";
    if (count.looked_at == 0) {
        return fail("nothing is selected: no moment with an element");
    }
    const bool differs = expectation_.relation == Relation::differs_from;
    const bool good = differs ? count.other == count.looked_at : count.other == 0;
    good ? pass(fmt::format("{} moments as expected", count.looked_at))
         : fail(fmt::format("{} of {} moments are elsewhere; {}", count.other, count.looked_at,
                            count.first_other));
}

void CheckJudge::trace() {
    const auto* reference = reference_ranks();
    if (reference == nullptr) {
        return;
    }
    const auto wanted = [&](const char* part) {
        const auto& names = expectation_.names;
        return names.empty() || std::find(names.begin(), names.end(), part) != names.end();
    };
    const bool storage_named = !expectation_.names.empty() && wanted("storage");
    std::string other = reference->size() == ranks().size() ? "" : "another number of ranks";
    std::size_t operations = 0;
    for (std::size_t rank = 0; rank < ranks().size() && other.empty(); ++rank) {
        const StepRecord& found = ranks()[rank];
        const StepRecord& expected = (*reference)[rank];
        if (wanted("device")) {
            other = first_other(found.trace, expected.trace);
            operations += found.trace.size();
        }
        const bool both = !found.storage.empty() && !expected.storage.empty();
        if (other.empty() && wanted("storage") && (storage_named || both)) {
            other = first_other(comparable(found.storage), comparable(expected.storage));
            operations += found.storage.size();
        }
        other = other.empty() ? other : fmt::format("rank {}, {}", rank, other);
    }
    check_.measured = static_cast<std::int64_t>(operations);
    if (other.empty() && operations == 0) {
        return fail("nothing is selected: no operation on either side");
    }
    const bool differs = expectation_.relation == Relation::differs_from;
    const bool good = differs ? !other.empty() : other.empty();
    good ? pass(fmt::format("the same {} operations as {}", operations, reference_text()))
         : fail(other.empty() ? fmt::format("the same operations as {}", reference_text()) : other);
}

}  // namespace swaplab::harness::scenario
