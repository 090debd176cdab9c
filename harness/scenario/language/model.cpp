#include "scenario/language/model.hpp"

#include <algorithm>
#include <array>

namespace swaplab::harness::scenario {
namespace {

constexpr std::array<std::string_view, 23> subject_names{
    "runs",   "params", "moments", "steps",   "groups", "state",    "everything", "device",
    "pinned", "host",   "h2d",     "d2h",     "d2d",    "read",     "written",    "syncs",
    "cover",  "files",  "buffers", "refused", "error",  "findings", "trace"};

}  // namespace

optim::ShardSpec ParamSpec::shard(const Shape& mesh) const {
    optim::ShardSpec spec;
    spec.global_shape = shape;
    spec.mesh = mesh;
    spec.placements = placements;
    spec.placements.resize(mesh.size(), optim::Placement::replicate());
    return spec;
}

void HyperPatch::apply(optim::AdamWOptions& options) const {
    options.lr = lr.value_or(options.lr);
    options.beta1 = beta1.value_or(options.beta1);
    options.beta2 = beta2.value_or(options.beta2);
    options.eps = eps.value_or(options.eps);
    options.weight_decay = weight_decay.value_or(options.weight_decay);
    options.amsgrad = amsgrad.value_or(options.amsgrad);
    options.maximize = maximize.value_or(options.maximize);
}

const ParamSpec* SetUp::find(const std::string& param) const {
    const auto found = std::find_if(params.begin(), params.end(),
                                    [&](const ParamSpec& spec) { return spec.name == param; });
    return found == params.end() ? nullptr : &*found;
}

std::string_view name_of(Subject subject) noexcept {
    return subject_names[static_cast<std::size_t>(subject)];
}

std::optional<Subject> subject_from_name(std::string_view name) noexcept {
    const auto found = std::find(subject_names.begin(), subject_names.end(), name);
    if (found == subject_names.end()) {
        return std::nullopt;
    }
    return static_cast<Subject>(found - subject_names.begin());
}

std::string_view name_of(BytesOf bytes_of) noexcept {
    constexpr std::array<std::string_view, 5> names{"", "rounded", "occupied", "reserved", "worst"};
    return names[static_cast<std::size_t>(bytes_of)];
}

bool is_memory(Subject subject) noexcept {
    return subject == Subject::device || subject == Subject::pinned || subject == Subject::host;
}

bool is_traffic(Subject subject) noexcept {
    return subject >= Subject::h2d && subject <= Subject::syncs;
}

bool is_state(Subject subject) noexcept {
    return subject >= Subject::params && subject <= Subject::everything;
}

bool Step::ends_a_rank() const {
    return fault &&
           (fault->then == sim::FaultAction::kill || fault->then == sim::FaultAction::stop);
}

bool Step::may_fail() const {
    return std::any_of(expect.begin(), expect.end(), [](const Expectation& expectation) {
        return expectation.subject == Subject::refused || expectation.subject == Subject::error;
    });
}

}  // namespace swaplab::harness::scenario
