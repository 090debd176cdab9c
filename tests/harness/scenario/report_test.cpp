#include "report/run_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace swaplab::harness::report {
namespace {

using scenario::Check;
using scenario::Status;
using testing::HasSubstr;
using testing::Not;

RunReport run_of(const std::string& name, Status status) {
    RunReport run;
    run.name = name;
    run.file = "mine/it.toml";
    run.verdict.status = status;
    run.verdict.headline = "load.device.rise";
    run.again = {"swaplab", "run", name};
    Check check;
    check.path = "load.device.rise";
    check.at = {37, 1, 1};
    check.text = "expect.device.rise = \"0 B\"";
    check.reached = true;
    check.ok = status == Status::pass;
    check.summary = "device rise 32,832 B (bound 0 B) <&\"\x01";
    check.details = {"held by  a.exp_avg 8,192"};
    run.verdict.checks = {check};
    if (status == Status::fail) {
        run.verdict.failed = {check.path};
    }
    return run;
}

TEST(Text, AFailureSaysWhereAndHowToRepeatIt) {
    const std::string text = text_of(run_of("mine/it[specimen x]", Status::fail), {}, 20);
    EXPECT_THAT(text, HasSubstr("mine/it.toml:37:1: expect.device.rise = \"0 B\""));
    EXPECT_THAT(text, HasSubstr("held by  a.exp_avg 8,192"));
    EXPECT_THAT(text, HasSubstr("again    swaplab run 'mine/it[specimen x]'"));
}

TEST(Text, QuietKeepsFailuresAndClosingLines) {
    Look quiet;
    quiet.quiet = true;
    EXPECT_EQ(text_of(run_of("mine/it[a]", Status::pass), quiet, 10), "");
    EXPECT_NE(text_of(run_of("mine/it[a]", Status::fail), quiet, 10), "");
}

TEST(Totals, CountCaughtAsPassedAndHangsAsHangs) {
    const std::vector<RunReport> runs{run_of("a[x]", Status::pass), run_of("a[y]", Status::caught),
                                      run_of("a[z]", Status::fail), run_of("a[s]", Status::skip)};
    const Totals totals = total(runs);
    EXPECT_EQ(totals.passed, 2U);
    EXPECT_EQ(totals.failed, 1U);
    EXPECT_EQ(totals.skipped, 1U);
    EXPECT_EQ(totals.exit, ExitCode::failed);
    EXPECT_EQ(total({}).exit, ExitCode::nothing);
    EXPECT_EQ(total({run_of("a[s]", Status::skip)}).exit, ExitCode::nothing);
    EXPECT_EQ(total({run_of("a[z]", Status::fail), run_of("a[h]", Status::hang)}).exit,
              ExitCode::hang);
    RunReport no_room = run_of("a[z]", Status::fail);
    no_room.verdict.refused_by_machine = true;
    EXPECT_EQ(total({run_of("a[y]", Status::fail), no_room}).exit, ExitCode::environment);
    EXPECT_THAT(closing_text(runs, {}, false),
                testing::EndsWith("2 passed, 1 failed, 1 skipped\n"));
}

TEST(Totals, TellDefectsFromSoundRunsThatACaseBroke) {
    RunReport broken = run_of("a[y]", Status::caught);
    broken.patched = true;
    EXPECT_THAT(closing_text({run_of("a[x]", Status::caught), broken, broken}, {}, false),
                testing::StartsWith("0 sound runs passed, 1 faulty run caught, 2 sound runs broken "
                                    "as the case says   digest"));
}

/// Tags of `xml` that are open when it ends; text must not hold a bare '<'.
std::vector<std::string> open_tags(const std::string& xml) {
    std::vector<std::string> open;
    for (std::size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
        const std::size_t end = xml.find('>', at);
        const std::string tag = xml.substr(at + 1, end - at - 1);
        if (tag[0] == '?' || tag.back() == '/') {
            continue;
        }
        if (tag[0] != '/') {
            open.push_back(tag.substr(0, tag.find(' ')));
        } else if (!open.empty() && open.back() == tag.substr(1)) {
            open.pop_back();
        } else {
            open.push_back("unexpected " + tag);
        }
    }
    return open;
}

TEST(Junit, IsWellFormedWhateverTheTextsHold) {
    const std::string xml =
        junit_xml({run_of("mine/it[a<b&\"c\"]", Status::fail), run_of("mine/it[b]", Status::pass),
                   run_of("mine/it[c]", Status::skip)});
    EXPECT_THAT(open_tags(xml), testing::IsEmpty()) << xml;
    EXPECT_THAT(xml, HasSubstr("classname=\"mine\" name=\"it[a&lt;b&amp;&quot;c&quot;]\""));
    EXPECT_THAT(xml, HasSubstr("line=\"37\""));
    EXPECT_THAT(xml, Not(HasSubstr("\x01")));
}

TEST(Shell, QuotesWhatAShellWouldTakeApart) {
    EXPECT_EQ(shell_line({"swaplab", "run", "a/b[c d]", "--seed", "7"}),
              "swaplab run 'a/b[c d]' --seed 7");
    EXPECT_EQ(shell_line({"it's"}), "'it'\\''s'");
}

}  // namespace
}  // namespace swaplab::harness::report
