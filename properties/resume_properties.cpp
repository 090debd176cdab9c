/// Resume equivalence: parameters, moments, steps and hyper-parameters after save, load and further
/// training are those of the run that was never interrupted, bit for bit.

#include "property.hpp"
#include "training.hpp"

namespace swaplab::properties {
namespace {

Property resumes(const Subject& subject) {
    return [subject](const Story& story) {
        const Outcome outcome = run(story, subject);
        const std::string differs =
            difference(uninterrupted(story, story.steps_before + story.steps_after), outcome.state);
        PROP_TRUE(differs.empty(), differs);
        PROP_TRUE(outcome.findings.empty(), outcome.findings.front());
    };
}

TEST(ResumeEquivalence, HoldsForSwapAdamW) {
    must_hold(resumes(swap_adamw()));
}

TEST(ResumeEquivalence, HoldsForTheSpecimenWithoutDefects) {
    must_hold(resumes(specimen({})));
}

TEST(ResumeEquivalence, FindsStaleGroups) {
    must_be_caught(resumes(specimen({"stale_groups"})), ".param, element");
}

TEST(ResumeEquivalence, FindsStaleMoments) {
    must_be_caught(resumes(specimen({"stale_moments"})), ".exp_avg, element");
}

TEST(ResumeEquivalence, FindsRestartedSteps) {
    must_be_caught(resumes(specimen({"step_restarts"})), ".step: expected");
}

TEST(ResumeEquivalence, FindsACounterPerGroup) {
    must_be_caught(resumes(specimen({"step_per_group"})), ".step: expected");
}

}  // namespace
}  // namespace swaplab::properties
