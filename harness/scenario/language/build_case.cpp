#include "scenario/language/build.hpp"

#include "swaplab/harness/specimen.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

/// Whether `part` is a run of whole components of `path`.
bool is_part_of(const std::string& part, const std::string& path) {
    const std::string haystack = "." + path + ".";
    return haystack.find("." + part + ".") != std::string::npos;
}

std::vector<std::string> all_paths(const Run& run) {
    std::vector<std::string> out;
    const auto take = [&](const std::vector<Expectation>& expectations) {
        for (const Expectation& expectation : expectations) {
            if (std::find(out.begin(), out.end(), expectation.path) == out.end()) {
                out.push_back(expectation.path);
            }
        }
    };
    for (const Step& step : run.steps) {
        take(step.expect);
    }
    take(run.finals);
    return out;
}

void resolve_fail(FailSpec& fail, const std::vector<std::string>& paths, Diagnostics& diagnostics) {
    std::vector<std::string> fitting;
    for (const std::string& path : paths) {
        if (path == fail.path) {
            return;
        }
        if (is_part_of(fail.path, path)) {
            fitting.push_back(path);
        }
    }
    if (fitting.size() == 1) {
        fail.path = fitting.front();
        return;
    }
    const std::string near = nearest(fail.path, paths);
    diagnostics.error("no-such-path", fail.at,
                      fitting.empty()
                          ? fmt::format("no expectation \"{}\"{}", fail.path,
                                        near.empty() ? "" : "; nearest: " + near)
                          : fmt::format("\"{}\" fits {} expectations", fail.path, fitting.size()),
                      fitting.empty() ? "there are: " + join(paths) : join(fitting));
}

}  // namespace

CaseSpec build_case(const Node& node, Diagnostics& diagnostics) {
    CaseSpec out;
    out.at = node.at;
    out.optimizer = text_or(node, "optimizer", "");
    out.defects = texts(node, "specimen");
    out.text = out.optimizer;
    if (out.optimizer.empty()) {
        out.text = out.defects.empty() ? "specimen none" : "specimen " + join(out.defects, "+");
    }
    const Node* fails = node.find("fails");
    for (const Node& item : fails != nullptr ? fails->items : std::vector<Node>{}) {
        FailSpec fail;
        fail.at = item.at;
        fail.path = item.is(Kind::text) ? item.text : text_or(item, "expect", "");
        if (const Node* found = item.find("found")) {
            fail.found = *found;
        }
        out.fails.push_back(std::move(fail));
    }
    for (const std::string& defect : out.defects) {
        std::vector<std::string> known;
        for (const DefectInfo& info : defects()) {
            known.emplace_back(info.name);
        }
        if (std::find(known.begin(), known.end(), defect) == known.end()) {
            const std::string near = nearest(defect, known);
            diagnostics.error(
                "unknown-value", node.place_of("specimen"),
                fmt::format("no defect \"{}\"{}", defect, near.empty() ? "" : "; nearest: " + near),
                "swaplab list --defects shows them");
        }
    }
    return out;
}

void resolve_fails(Run& run, Diagnostics& diagnostics) {
    const std::vector<std::string> paths = all_paths(run);
    for (FailSpec& fail : run.which.fails) {
        resolve_fail(fail, paths, diagnostics);
    }
}

}  // namespace swaplab::harness::scenario
