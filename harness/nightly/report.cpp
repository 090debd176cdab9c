#include "nightly/report.hpp"

#include "profile/device_profiles.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace swaplab::harness::nightly {
namespace {

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        out += c == '&'   ? "&amp;"
               : c == '<' ? "&lt;"
               : c == '>' ? "&gt;"
               : c == '"' ? "&quot;"
                          : std::string(1, c);
    }
    return out;
}

std::string outcome(const Part& part) {
    constexpr int skipped = 77;
    return part.exit_code == 0         ? "passed"
           : part.exit_code == skipped ? "skipped"
                                       : fmt::format("failed with {}", part.exit_code);
}

std::string goal_text(const Measured& figure) {
    return fmt::format("{} {:.6g} {}", figure.at_least ? "at least" : "at most", figure.goal,
                       figure.unit);
}

std::string junit_case(const std::string& name, double seconds, const std::string& found,
                       const std::string& about) {
    std::string inner;
    if (found == "skipped" || found == "not judged") {
        inner = fmt::format("<skipped message=\"{}\"/>", escaped(found + ": " + about));
    } else if (found != "passed") {
        inner = fmt::format("<failure message=\"{}\"/>", escaped(found + ": " + about));
    }
    return fmt::format(
        "  <testcase classname=\"gpu-nightly\" name=\"{}\" time=\"{:.3f}\">{}"
        "</testcase>\n",
        escaped(name), seconds, inner);
}

}  // namespace

std::string verdict(const Nightly& nightly, const Measured& figure) {
    if (figure.kind == Kind::timing && !nightly.judges_timing) {
        return "not judged";
    }
    return figure.good() ? "passed" : "failed";
}

bool passed(const Nightly& nightly) {
    const auto failed = [](const Part& part) { return outcome(part).rfind("failed", 0) == 0; };
    const auto missed = [&](const Measured& figure) {
        return verdict(nightly, figure) == "failed";
    };
    const auto& figures = nightly.measurements.figures;
    return std::none_of(nightly.parts.begin(), nightly.parts.end(), failed) &&
           std::none_of(figures.begin(), figures.end(), missed);
}

std::string profile_json(const Nightly& nightly) {
    SourcedProfile sourced{nightly.measurements.profile, {}};
    for (const std::string& figure : figure_names()) {
        sourced.sources[figure] = "measured by script/gpu-nightly: " + nightly.gpu;
    }
    sourced.sources["launch_seconds"] = "taken to be the set-up time of a copy";
    sourced.sources["host_memory_bytes_per_second"] = "not measured: no limit";
    return harness::profile_json(sourced);
}

std::string to_json(const Nightly& nightly) {
    nlohmann::ordered_json root;
    root["gpu"] = nightly.gpu;
    root["passed"] = passed(nightly);
    root["timing_judged"] = nightly.judges_timing;
    root["parts"] = nlohmann::ordered_json::array();
    for (const Part& part : nightly.parts) {
        root["parts"].push_back(
            {{"name", part.name}, {"outcome", outcome(part)}, {"seconds", part.seconds}});
    }
    root["figures"] = nlohmann::ordered_json::array();
    for (const Measured& figure : nightly.measurements.figures) {
        root["figures"].push_back({{"name", figure.name},
                                   {"value", figure.value},
                                   {"goal", goal_text(figure)},
                                   {"verdict", verdict(nightly, figure)},
                                   {"about", figure.about}});
    }
    root["profile"] = nlohmann::ordered_json::parse(profile_json(nightly));
    return root.dump(2) + "\n";
}

std::string to_junit(const Nightly& nightly) {
    std::string out =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"gpu-nightly\">\n";
    for (const Part& part : nightly.parts) {
        out += junit_case(part.name, part.seconds, outcome(part), "see its own report");
    }
    for (const Measured& figure : nightly.measurements.figures) {
        out += junit_case(
            figure.name, 0, verdict(nightly, figure),
            fmt::format("{:.6g}, goal {}; {}", figure.value, goal_text(figure), figure.about));
    }
    return out + "</testsuite>\n";
}

std::string to_html(const Nightly& nightly) {
    std::string rows;
    for (const Part& part : nightly.parts) {
        rows += fmt::format("<tr><td>{}<td>{}<td>{:.1f} s<td></tr>\n", escaped(part.name),
                            outcome(part), part.seconds);
    }
    for (const Measured& figure : nightly.measurements.figures) {
        rows += fmt::format("<tr><td>{}<td>{}<td>{:.6g} {}<td>{}; {}</tr>\n", escaped(figure.name),
                            verdict(nightly, figure), figure.value, figure.unit, goal_text(figure),
                            escaped(figure.about));
    }
    return fmt::format(
        "<!doctype html><meta charset=\"utf-8\"><title>gpu-nightly</title>\n"
        "<h1>{}: {}</h1>\n<table border=\"1\">\n<tr><th>what<th>outcome<th>found<th>goal</tr>\n"
        "{}</table>\n<h2>profile</h2><pre>{}</pre>\n",
        escaped(nightly.gpu), passed(nightly) ? "passed" : "failed", rows,
        escaped(profile_json(nightly)));
}

std::string to_text(const Nightly& nightly) {
    std::string out;
    for (const Part& part : nightly.parts) {
        out += fmt::format("{:<12}{:<46}{:.1f} s\n", outcome(part), part.name, part.seconds);
    }
    for (const Measured& figure : nightly.measurements.figures) {
        out += fmt::format("{:<12}{:<46}{:.6g} {} ({})\n", verdict(nightly, figure), figure.name,
                           figure.value, figure.unit, goal_text(figure));
    }
    return out;
}

}  // namespace swaplab::harness::nightly
