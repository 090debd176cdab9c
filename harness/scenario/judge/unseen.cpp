#include "scenario/judge/unseen.hpp"

#include "scenario/play/backend.hpp"
#include "scenario/play/orders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace swaplab::harness::scenario {
namespace {

bool sees_all(const Run& run) {
    return run.backend == nullptr || run.backend->sees_inside();
}

/// Paths are "LABEL.findings", "LABEL.trace", "LABEL.device.worst", ...
bool is_unseen(const std::string& path) {
    constexpr std::string_view words[] = {".findings", ".trace",    ".worst",
                                          ".occupied", ".reserved", ".syncs"};
    return path == "findings" ||
           std::any_of(std::begin(words), std::end(words),
                       [&](std::string_view word) { return path.find(word) != std::string::npos; });
}

bool has_processes(const Run& run) {
    return run.start.world_kind == sim::WorldKind::process ||
           std::any_of(run.steps.begin(), run.steps.end(), [](const Step& step) {
               return step.after.world_kind == sim::WorldKind::process;
           });
}

}  // namespace

std::string why_not_here(const Run& run) {
    if (run.backend != nullptr && has_every_order(run)) {
        return fmt::format("{} does not let its orders be chosen", run.backend->name());
    }
    if (sees_all(run)) {
        return "";
    }
    if (has_processes(run)) {
        return "its ranks are forked processes, which cannot use CUDA";
    }
    for (const FailSpec& fail : run.which.fails) {
        if (is_unseen(fail.path)) {
            return fmt::format("must fail at {}, which {} does not show", fail.path,
                               run.backend->name());
        }
    }
    return "";
}

void set_unseen_aside(const Run& run, std::vector<Check>& checks) {
    if (sees_all(run)) {
        return;
    }
    for (Check& check : checks) {
        if (is_unseen(check.path)) {
            check.ok = true;
            check.by_default = true;
            check.summary = fmt::format("not checked: {} does not show it", run.backend->name());
        }
    }
}

}  // namespace swaplab::harness::scenario
