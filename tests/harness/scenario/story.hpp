#pragma once

/// Stories on a small model, played and judged.

#include "scenario/judge/verdict.hpp"
#include "scenario/language/scenario_file.hpp"

#include <gtest/gtest.h>

#include <string>

namespace swaplab::harness::scenario {

inline const std::string model =
    "scenario.name = \"n\"\nscenario.why = \"w\"\nworld.size = 2\noptimizer.bucket = \"8 "
    "elements\"\n"
    "param = [{ name = \"a\", shape = [5, 3], placements = [\"Shard(0)\"] },\n"
    "         { name = \"b\", shape = [4] }, { name = \"empty\", shape = [0, 2] }]\n";

inline const std::string ours = "optimizer = \"swap_adamw\", verdict = \"passes\"";

inline Verdict verdict_of(const std::string& steps, const std::string& which,
                          const std::string& more = "", const Overrides& overrides = {}) {
    const ScenarioFile file = parse_scenario(
        "it.toml", model + "step = [" + steps + "]\ncase = [{ " + which + " }]\n" + more,
        overrides);
    for (const Diagnostic& diagnostic : file.diagnostics.all()) {
        ADD_FAILURE() << format(diagnostic, file.path, file.source);
    }
    return file.runs.empty() ? Verdict{} : execute(file.runs.front());
}

inline std::string why(const Verdict& verdict) {
    std::string out = verdict.headline;
    for (const Check& check : verdict.checks) {
        if (!check.ok) {
            out += "\n" + check.path + ": " + check.summary;
        }
    }
    return out;
}

}  // namespace swaplab::harness::scenario
