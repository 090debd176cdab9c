#include "nightly/report.hpp"
#include "profile/device_profiles.hpp"

#include "swaplab/sim/error.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <functional>
#include <limits>

namespace swaplab::harness {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool equal(const sim::DeviceProfile& a, const sim::DeviceProfile& b) {
    return a.name == b.name && a.copy_setup_seconds == b.copy_setup_seconds &&
           a.launch_seconds == b.launch_seconds &&
           a.upload_bytes_per_second == b.upload_bytes_per_second &&
           a.download_bytes_per_second == b.download_bytes_per_second &&
           a.upload_beside_download_bytes_per_second == b.upload_beside_download_bytes_per_second &&
           a.download_beside_upload_bytes_per_second == b.download_beside_upload_bytes_per_second &&
           a.kernel_bytes_per_second == b.kernel_bytes_per_second &&
           a.host_memory_bytes_per_second == b.host_memory_bytes_per_second;
}

/// A profile without two equal figures.
sim::DeviceProfile distinct() {
    sim::DeviceProfile profile;
    profile.name = "distinct";
    profile.copy_setup_seconds = 0.1;
    profile.launch_seconds = 1e-300;
    profile.upload_bytes_per_second = 1.0 / 3;
    profile.download_bytes_per_second = 2.0 / 3;
    profile.upload_beside_download_bytes_per_second = 5e-324;
    profile.download_beside_upload_bytes_per_second = std::numeric_limits<double>::max();
    profile.kernel_bytes_per_second = 4;
    profile.host_memory_bytes_per_second = 5;
    return profile;
}

std::string error_of(const std::string& text, const std::string& field) {
    try {
        static_cast<void>(read_profile(text, "some.json"));
    } catch (const sim::ArgumentError& error) {
        EXPECT_EQ(error.fields().at(1).value, "some.json");
        EXPECT_EQ(error.fields().at(2).value, field) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "read: " << text;
    return "";
}

std::string changed(const std::function<void(json&)>& change) {
    json good = json::parse(profile_json({distinct(), {}}));
    change(good);
    return good.dump();
}

TEST(Profiles, OfTheProgramHaveASourceForEachFigure) {
    EXPECT_THAT(profile_names(), ElementsAre("a100_pcie4", "gh200_c2c", "h200_pcie5", "unit"));
    for (const std::string& name : profile_names()) {
        const SourcedProfile found = profile_named(name);
        EXPECT_EQ(found.profile.name, name);
        for (const std::string& figure : figure_names()) {
            EXPECT_FALSE(found.sources.at(figure).empty()) << name << " " << figure;
        }
        const sim::TimedGraph copy{{{sim::Engine::upload, 1'000'000}}, {}};
        EXPECT_GT(timeline({&copy, 1}, found.profile).at(0).at(0).end_picoseconds, 0U) << name;
    }
}

TEST(Profiles, OfTheProgramAreTheFilesOfTheTree) {
    const auto storage = make_posix_storage();
    for (const std::string& name : profile_names()) {
        const SourcedProfile file = find_profile(*storage, "profiles/" + name + ".json");
        EXPECT_TRUE(equal(file.profile, find_profile(*storage, name).profile)) << name;
    }
}

// A direction of an A100 falls from 24.8 to 11 GB/s while the other one is busy: swapping one
// million parameters gains a factor of about 1.3 from both directions at once, not 2.
TEST(Profiles, OfAnA100SayWhatBothDirectionsGain) {
    const auto seconds = [](const sim::TimedGraph& graph) {
        const auto times = timeline({&graph, 1}, profile_named("a100_pcie4").profile).at(0);
        return static_cast<double>(std::max(times[0].end_picoseconds, times[1].end_picoseconds));
    };
    constexpr std::uint64_t bytes = 8'000'000'000;
    const std::vector<sim::TimedOperation> both{{sim::Engine::upload, bytes},
                                                {sim::Engine::download, bytes}};
    const double gain = seconds({both, {{0, 1}}}) / seconds({both, {}});
    EXPECT_GT(gain, 1.25);
    EXPECT_LT(gain, 1.45);
}

TEST(Profiles, AreReadAsTheyWereWritten) {
    for (const double host : {5.0, std::numeric_limits<double>::infinity()}) {
        SourcedProfile written{distinct(), {{"launch_seconds", "a \"guess\""}}};
        written.profile.host_memory_bytes_per_second = host;
        const SourcedProfile read = read_profile(profile_json(written), "some.json");
        EXPECT_TRUE(equal(read.profile, written.profile));
        EXPECT_EQ(read.sources, written.sources);
    }
}

TEST(Profiles, OfTheNightlyAreReadAsTheyWereMeasured) {
    nightly::Nightly nightly;
    nightly.gpu = "GPU 0";
    nightly.measurements.profile = distinct();
    nightly.measurements.profile.host_memory_bytes_per_second =
        std::numeric_limits<double>::infinity();
    const SourcedProfile read = read_profile(nightly::profile_json(nightly), "profile.json");
    EXPECT_TRUE(equal(read.profile, nightly.measurements.profile));
    EXPECT_THAT(read.sources.at("upload_bytes_per_second"), HasSubstr("GPU 0"));
    const json whole = json::parse(nightly::to_json(nightly));
    EXPECT_TRUE(equal(read_profile(whole.at("profile").dump(), "nightly.json").profile,
                      nightly.measurements.profile));
}

TEST(Profiles, NameTheFieldThatIsWrong) {
    for (const std::string& figure : figure_names()) {
        const bool setup = figure == "copy_setup_seconds" || figure == "launch_seconds";
        const auto with = [&](const json& value) {
            return changed([&](json& good) { good[figure] = value; });
        };
        EXPECT_THAT(error_of(changed([&](json& good) { good.erase(figure); }), figure),
                    HasSubstr("found nothing"));
        error_of(with(-1), figure);
        error_of(with("1e9"), figure);
        error_of(with(true), figure);
        error_of(with(json::array({1})), figure);
        if (figure != "host_memory_bytes_per_second") {
            error_of(with(nullptr), figure);
        }
        if (!setup) {
            error_of(with(0), figure);
        }
        std::string infinite = with("@");
        infinite.replace(infinite.find("\"@\""), 3, "1e999");
        EXPECT_THAT(error_of(infinite, ""), HasSubstr("a number that no double holds"));
    }
    error_of(changed([](json& good) { good.erase("name"); }), "name");
    error_of(changed([](json& good) { good["name"] = ""; }), "name");
    EXPECT_THAT(error_of(changed([](json& good) { good["upload"] = 1; }), "upload"),
                HasSubstr("upload_bytes_per_second"));
    error_of(changed([](json& good) { good["sources"] = 1; }), "sources");
    error_of(changed([](json& good) { good["sources"] = {{"upload", "x"}}; }), "sources.upload");
    error_of(changed([](json& good) {
                 good["sources"] = {{"launch_seconds", 1}};
             }),
             "sources.launch_seconds");
}

TEST(Profiles, RefuseWhatIsNoJsonObject) {
    for (const std::string text :
         {"", "{", "[]", "1", "null", "\xff\xfe", "{\"name\": \"\xff\"}"}) {
        EXPECT_THAT(error_of(text, ""), ::testing::Not(HasSubstr("exception")));
    }
    EXPECT_THAT(error_of("{\"name\": }", ""), HasSubstr("text that is none from byte 10 on"));
    error_of(std::string(100'000, '['), "");
}

TEST(Profiles, OfAnotherNameOrPathAreNotFound) {
    const auto storage = make_posix_storage();
    try {
        static_cast<void>(find_profile(*storage, "h100"));
        FAIL() << "found";
    } catch (const sim::ArgumentError& error) {
        EXPECT_THAT(error.what(), HasSubstr("a100_pcie4, gh200_c2c, h200_pcie5, unit"));
    }
    EXPECT_THROW(static_cast<void>(find_profile(*storage, "")), sim::ArgumentError);
    EXPECT_THROW(static_cast<void>(find_profile(*storage, "no/such.json")), StorageError);
    EXPECT_THROW(static_cast<void>(find_profile(*storage, "profiles/")), StorageError);
}

}  // namespace
}  // namespace swaplab::harness
