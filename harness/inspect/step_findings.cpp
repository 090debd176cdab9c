#include "inspect/element.hpp"
#include "inspect/findings.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace swaplab::harness {
namespace {

/// Adam counts steps in float32, which stops counting here.
constexpr double last_step = 16777216;
constexpr std::int64_t max_step_elements = 4096;

bool is_possible(double step) {
    return step >= 0 && step <= last_step && step == std::floor(step);
}

/// Every value stored under a step key: one per chunk for a scalar, one per element otherwise.
std::vector<double> steps_of(Checkpoint& checkpoint, const TensorReport& tensor) {
    std::vector<double> steps;
    for (const ChunkReport& chunk : tensor.chunks) {
        const std::int64_t count = optim::numel(chunk.chunk.box.sizes);
        if (!chunk.sound(tensor.dtype) || count > max_step_elements) {
            continue;
        }
        std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size_of(tensor.dtype));
        checkpoint.read_box(tensor.key, chunk.chunk.box, 0, bytes);
        for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
            steps.push_back(value_of_bits(tensor.dtype, bits_at(tensor.dtype, bytes, i)));
        }
    }
    return steps;
}

std::optional<double> number(const optim::Value& value) {
    if (const auto* integer = value.get_if<std::int64_t>()) {
        return static_cast<double>(*integer);
    }
    if (const auto* real = value.get_if<double>()) {
        return *real;
    }
    return std::nullopt;
}

Finding finding_of(FindingCode code, const StoredSteps& stored, std::string detail) {
    Finding finding;
    finding.code = code;
    finding.key = stored.key;
    finding.saved = stored.shape;
    finding.detail = std::move(detail);
    finding.elements = optim::numel(stored.shape);
    return finding;
}

/// What is stored under every step key that can be read; a finding for those that cannot.
std::vector<StoredSteps> read_steps(Checkpoint& checkpoint, InspectReport& report) {
    std::vector<StoredSteps> all;
    for (const TensorReport& tensor : report.tensors) {
        if (tensor.role != Role::step) {
            continue;
        }
        try {
            all.push_back({tensor.key, tensor.shape, steps_of(checkpoint, tensor)});
        } catch (const CheckpointCorrupt& error) {
            Finding finding;
            finding.code = FindingCode::unreadable_item;
            finding.key = tensor.key;
            finding.saved = tensor.shape;
            finding.detail = error.what();
            report.findings.push_back(std::move(finding));
        }
    }
    for (const ObjectReport& object : report.objects) {
        const auto state = state_key(object.key);
        const auto step =
            object.value && state && !state->is_moment() ? number(*object.value) : std::nullopt;
        if (step) {
            all.push_back({object.key, {}, {*step}});
        }
    }
    return all;
}

}  // namespace

void judge_steps(const std::vector<StoredSteps>& all, InspectReport& report) {
    std::map<double, std::vector<std::string>> keys_by_step;
    for (const StoredSteps& stored : all) {
        const auto& steps = stored.steps;
        const auto bad = std::find_if_not(steps.begin(), steps.end(), is_possible);
        const auto other = std::find_if(steps.begin(), steps.end(),
                                        [&](double step) { return step != steps.front(); });
        if (bad != steps.end() && !SWAPLAB_MUTANT("inspect.no_step_range")) {
            report.findings.push_back(
                finding_of(FindingCode::impossible_step, stored, fmt::format("{}", *bad)));
        } else if (other != steps.end() && !SWAPLAB_MUTANT("inspect.no_step_agreement")) {
            report.findings.push_back(finding_of(FindingCode::step_disagreement, stored,
                                                 fmt::format("{} and {}", steps.front(), *other)));
        } else if (!steps.empty()) {
            keys_by_step[steps.front()].push_back(stored.key);
            report.steps.push_back(steps.front());
        }
    }
    if (keys_by_step.size() > 1) {
        const auto& [least, first] = *keys_by_step.begin();
        const auto& [most, last] = *keys_by_step.rbegin();
        report.notes.push_back(fmt::format("parameters are at different steps: {} ({}) to {} ({})",
                                           least, first.front(), most, last.front()));
    }
}

void find_step_faults(Checkpoint& checkpoint, InspectReport& report) {
    judge_steps(read_steps(checkpoint, report), report);
}

}  // namespace swaplab::harness
