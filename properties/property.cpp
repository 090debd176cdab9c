#include "property.hpp"

#include "swaplab/sim/random.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>

namespace swaplab::properties {
namespace {

constexpr int cases_by_default = 500;
/// Cases run in search of a smaller failing one; RapidCheck itself knows no bound.
constexpr int shrink_runs_max = 400;

/// What RC_PARAMS says, over the defaults of this project.
rc::detail::TestParams given_params() {
    rc::detail::Configuration defaults;
    defaults.testParams.seed = 1;
    defaults.testParams.maxSuccess = cases_by_default;
    const char* given = std::getenv("RC_PARAMS");
    return rc::detail::configFromString(given == nullptr ? "" : given, defaults).testParams;
}

/// What one search saw, beside RapidCheck's own result.
struct Search {
    std::optional<Story> failed;  ///< the latest, therefore the smallest
    int runs_after_failure = 0;
};

/// `property`, until shrinking has used up its runs.
std::function<void(const Story&)> bounded(const Property& property, Search& search) {
    return [&property, &search](const Story& story) {
        if (search.failed && ++search.runs_after_failure > shrink_runs_max) {
            return;
        }
        try {
            property(story);
        } catch (...) {
            search.failed = story;
            throw;
        }
    };
}

/// A failure that does not repeat is a fault of the property or of determinism.
std::string repeats(const Property& property, const Story& story) {
    try {
        property(story);
    } catch (const std::exception&) {
        return {};
    }
    return "\nnote: the same story passes when it is run again: something is not deterministic";
}

std::string current_test() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    return std::string(test->test_suite_name()) + "." + test->name();
}

}  // namespace

Verdict check(const std::string& name, int cases, const Property& property) {
    rc::detail::TestParams params = given_params();
    const std::uint64_t run_seed = params.seed;
    params.seed = sim::hash_mix(run_seed, sim::hash_text(name));
    params.maxSuccess = cases;
    rc::detail::TestMetadata metadata;
    metadata.id = name;

    Search search;
    rc::detail::TestListenerAdapter silent;  // RapidCheck's own would report caught specimens
    const auto search_one = bounded(property, search);
    const auto result = rc::detail::checkProperty(rc::detail::toProperty([&search_one] {
                                                      const Story story = *any_story();
                                                      search_one(story);
                                                  }),
                                                  metadata, params, silent, {});
    if (result.template is<rc::detail::SuccessResult>()) {
        const int done = result.template get<rc::detail::SuccessResult>().numSuccess;
        return {done >= cases && cases > 0,
                std::to_string(done) + " of " + std::to_string(cases) + " cases ran"};
    }
    std::ostringstream text;
    rc::detail::printResultMessage(result, text);
    if (search.failed) {
        text << repeats(property, *search.failed);
    }
    text << "\nagain: RC_PARAMS=\"seed=" << run_seed << " max_success=" << cases
         << "\" <this program> --gtest_filter=" << name;
    return {false, text.str()};
}

void must_hold(const Property& property) {
    const Verdict verdict = check(current_test(), given_params().maxSuccess, property);
    if (!verdict.held) {
        ADD_FAILURE() << verdict.text;
    }
}

void must_be_caught(const Property& property, const std::string& as) {
    std::string other;
    const Verdict verdict = check(current_test(), cases_by_default, [&](const Story& story) {
        try {
            property(story);
        } catch (const PropertyFailed& failed) {
            if (std::string_view(failed.what()).find(as) != std::string_view::npos) {
                throw;
            }
            other = failed.what();
        } catch (const std::exception& error) {
            other = error.what();
        }
    });
    if (verdict.held) {
        ADD_FAILURE() << "no story fails with \"" << as << "\": " << verdict.text
                      << (other.empty() ? "" : "; one failed with: " + other);
    }
}

}  // namespace swaplab::properties
