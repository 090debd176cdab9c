#include "support/training.hpp"
#include "symptoms.hpp"

#include "swaplab/harness/specimen.hpp"

#include <map>
#include <set>

namespace swaplab::harness {
namespace {

using Symptoms = std::set<std::string>;
using testing::symptoms_of;

/// On two ranks without amsgrad; rank 0 holds a [3,3], b [2], c [3,3]: 80 parameter bytes.
const std::map<std::string, Symptoms>& expected_symptoms() {
    static const std::map<std::string, Symptoms> table{
        {"stale_groups", {"group edits have no effect"}},
        {"stale_moments", {"step uses other moments", "next step differs"}},
        {"device_init", {"construction rises by 36 B"}},
        {"device_cast", {"load rises by 160 B"}},
        {"cast_stays", {}},
        {"local_moments", {"moments are plain", "accepts plain moments"}},
        {"none_leaf", {"writes a None leaf", "needs the None leaf"}},
        {"reinit_on_load",
         {"load shows other moments", "load shows other steps", "step uses other moments",
          "next step differs"}},
        {"reinit_zeroes", {"init_state changes state"}},
        {"hook_restore",
         {"load rises by 160 B", "load shows other moments", "step uses other moments",
          "next step differs"}},
        {"drops_added_groups", {"added parameter does not step"}},
        {"step_per_group", {"counts steps without gradient", "next step differs"}},
        {"absent_is_fatal", {"refuses absent state"}},
        {"zero_for_missing", {"accepts half a state"}},
        {"step_restarts", {"load shows other steps", "next step differs"}},
        {"alias_on_load", {"step changes the caller's dict"}},
        {"by_position", {"maps by position"}},
        {"shape_unchecked", {"accepts another shape"}},
        {"plain_accepted", {"accepts plain moments"}},
        {"tear_unmarked", {"a torn state is not marked"}},
        {"slots_pile_up", {"step rises by 160 B"}},
        {"slots_stay", {"step keeps 72 B"}},
        {"slots_leak", {"step rises by 160 B", "step keeps 160 B"}},
        {"updates_aside", {"step rises by 108 B"}},
        {"slots_unordered", {"step may occupy 160 B more"}},
        {"frees_unwaited", {"finding in_flight_reuse", "step may occupy 160 B more"}},
        {"download_unwaited",
         {"finding in_flight_reuse", "finding race", "group edits have no effect",
          "next step differs", "trains wrongly"}},
    };
    return table;
}

TEST(Defects, HaveASentenceASourceAndAPlaceInTheTable) {
    for (const DefectInfo& defect : defects()) {
        EXPECT_FALSE(defect.says.empty()) << defect.name;
        EXPECT_FALSE(defect.source.empty()) << defect.name;
        const bool of_optimizer = defect.part == DefectPart::optimizer;
        EXPECT_EQ(expected_symptoms().contains(std::string(defect.name)), of_optimizer)
            << defect.name;
    }
}

TEST(Defects, UnknownOnesAreRefusedWithTheNearest) {
    support::on_ranks(1, [](sim::Communicator& communicator) {
        support::Trainer rig(communicator, {{"a", {2}, {}}});
        try {
            (void)make_specimen(rig.device(), communicator, {rig.group({})}, {"stale_group"});
            ADD_FAILURE() << "not refused";
        } catch (const sim::ArgumentError& error) {
            EXPECT_THAT(error.fields(),
                        ::testing::Contains(sim::ErrorField{"nearest", "stale_groups"}));
        }
    });
}

class EachDefect : public ::testing::TestWithParam<std::string> {};

TEST_P(EachDefect, ChangesExactlyWhatItSays) {
    EXPECT_EQ(symptoms_of({GetParam()}, 2, false), expected_symptoms().at(GetParam()));
}

std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const DefectInfo& defect : defects()) {
        if (defect.part == DefectPart::optimizer) {
            all.emplace_back(defect.name);
        }
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(Table, EachDefect, ::testing::ValuesIn(names()),
                         [](const auto& one) { return one.param; });

TEST(NoDefect, ShowsNoSymptomOnAnyWorld) {
    for (const int ranks : {1, 2, 3, 4}) {
        for (const bool amsgrad : {false, true}) {
            // On one rank a plain tensor is the whole tensor: nothing to refuse.
            const Symptoms sound = ranks == 1 ? Symptoms{"accepts plain moments"} : Symptoms{};
            EXPECT_EQ(symptoms_of({}, ranks, amsgrad), sound) << ranks << " " << amsgrad;
        }
    }
}

TEST(DefectFigures, GrowWithAmsgradAndStayWhenToldTo) {
    EXPECT_THAT(symptoms_of({"device_cast"}, 2, true),
                ::testing::ElementsAre("load rises by 240 B"));
    EXPECT_THAT(symptoms_of({"device_cast", "cast_stays"}, 2, false),
                ::testing::ElementsAre("load keeps 160 B", "load rises by 160 B"));
}

}  // namespace
}  // namespace swaplab::harness
