#include <algorithm>
#include <functional>
#include <limits>
#include <regex>

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include "core/words.h"
#include "engine/update/weight_update.h"
#include "trainers/report/console.h"
#include "trainers/report/print.h"

namespace lockstep::trainers::progress_test {
namespace {

StepMetrics metrics() {
  return {.step_s = 0.021,
          .step_s_avg = 0.023,
          .data_s = 0.001,
          .data_s_avg = 0.001,
          .loss = 1.2345,
          .loss_avg = 1.8001,
          .acc1 = 61.33,
          .acc1_avg = 43.2,
          .acc5 = 90,
          .acc5_avg = 80.5,
          .images_per_s = 12345.6,
          .eta_s = 3723.9,
          .lr = 0.05};
}

TEST(Progress, LineIsMainPysWithOwnColumnsBehind) {
  EXPECT_EQ(progress_line(0, 10, 118, metrics()),
            "Epoch: [0][ 10/118]\tTime  0.021 ( 0.023)\tData  0.001 ( 0.001)\t"
            "Loss 1.2345e+00 (1.8001e+00)\tAcc@1  61.33 ( 43.20)\tAcc@5  90.00 ( 80.50)\t"
            "img/s 12346\teta 1:02:03\tlr 0.05");
}

TEST(Progress, SeveralRanksShowTheirCommunication) {
  StepMetrics several = metrics();
  several.ranks = 2;
  several.comm_exposed_s = 0.00034;
  several.comm_hidden_s = 0.00119;
  several.slowest_rank = 1;
  several.skew = 0.123;
  EXPECT_EQ(progress_line(0, 10, 118, several),
            progress_line(0, 10, 118, metrics()) + "\tComm 0.3+1.2 ms\tslowest rank 1 (+12%)");
}

TEST(Progress, NamesWhatTheLoaderIsBusyWith) {
  StepMetrics stalled = metrics();
  stalled.loader_waited = 0.123;
  stalled.loader_busy_with = "disk";
  EXPECT_EQ(progress_line(0, 10, 118, stalled),
            progress_line(0, 10, 118, metrics()) + "\tloader waited 12% (disk)");
  stalled.loader_waited = 0.04;
  EXPECT_EQ(progress_line(0, 10, 118, stalled), progress_line(0, 10, 118, metrics()));
}

TEST(Progress, ValidationLineIsMainPys) {
  EXPECT_EQ(test_line(10,
                      391,
                      {.batch_s = 0.021,
                       .batch_s_avg = 0.023,
                       .loss = 1.2345,
                       .loss_avg = 1.8001,
                       .acc1 = 61.33,
                       .acc1_avg = 43.2,
                       .acc5 = 90,
                       .acc5_avg = 80.5}),
            "Test: [ 10/391]\tTime  0.021 ( 0.023)\tLoss 1.2345e+00 (1.8001e+00)\t"
            "Acc@1  61.33 ( 43.20)\tAcc@5  90.00 ( 80.50)");
}

TEST(Progress, ParsersOfMainPyReadTheLine) {
  const std::regex parser(
      R"(Epoch: \[(\d+)\]\[\s*(\d+)/(\d+)\].*Loss (\S+) \((\S+)\).*Acc@1\s+(\S+))");
  std::smatch match;
  const std::string line = progress_line(3, 7, 9, metrics());
  ASSERT_TRUE(std::regex_search(line, match, parser));
  EXPECT_EQ(match[1], "3");
  EXPECT_EQ(match[2], "7");
  EXPECT_EQ(std::stod(match[4]), 1.2345);
  EXPECT_EQ(match[6], "61.33");
}

TEST(Progress, BarShowsTheShareDone) {
  const std::string bar = progress_bar(0, 3, 59, 118, metrics());
  EXPECT_NE(bar.find("Epoch 1/3  50%|███····| 59/118"), std::string::npos) << bar;
  EXPECT_LE(characters_of(bar), 79) << bar;
}

// Returns what standard error shows on a terminal of 40 columns while `use` runs.
std::string shown_on_terminal(const std::function<void()>& use) {
  int ours = -1;
  int theirs = -1;
  const winsize size{.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
  if (openpty(&ours, &theirs, nullptr, nullptr, &size) != 0) return "no terminal";
  const int before = dup(STDERR_FILENO);
  dup2(theirs, STDERR_FILENO);
  use();
  dup2(before, STDERR_FILENO);
  std::string text(1000, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, read(ours, text.data(), text.size()))));
  for (const int file : {ours, theirs, before}) close(file);
  return text;
}

TEST(Progress, ABarFitsIntoOneLineOfTheTerminal) {
  const std::string bar = progress_bar(0, 3, 59, 118, metrics());
  const std::string shown = shown_on_terminal([&] {
    Console console({.progress = ProgressMode::kBar});
    console.progress_bar(bar);
  });
  EXPECT_EQ(shown, "\r\033[K" + cut_to(bar, 39));
}

TEST(Progress, LinesUnderALauncherUnlessToldOtherwise) {
  unsetenv("LOCKSTEP_PROGRESS");
  EXPECT_EQ(choose_progress("auto", true), ProgressMode::kLine);
  EXPECT_EQ(choose_progress("bar", true), ProgressMode::kBar);
  setenv("LOCKSTEP_PROGRESS", "bar", 1);
  EXPECT_EQ(choose_progress("auto", true), ProgressMode::kBar);
  EXPECT_EQ(choose_progress("none", true), ProgressMode::kNone);
  unsetenv("LOCKSTEP_PROGRESS");
}

// Returns what a console writes to standard output and standard error.
std::pair<std::string, std::string> written(const Console::Options& options) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Console console(options);
  console.info("info");
  console.progress_line("line");
  console.progress_json("{}\n");
  console.tutorial(TutorialLines::kDemo, "tutorial");
  console.summary("{\"final\":0}\n");
  const std::string out = ::testing::internal::GetCapturedStdout();
  return {out, ::testing::internal::GetCapturedStderr()};
}

TEST(Console, StandardOutputHoldsOneKindOfLines) {
  using Written = std::pair<std::string, std::string>;
  EXPECT_EQ(written({}), (Written{"info\nline\n", ""}));
  EXPECT_EQ(written({.tutorial = TutorialLines::kDemo}), (Written{"tutorial\n", "info\nline\n"}));
  EXPECT_EQ(written({.progress = ProgressMode::kJson}), (Written{"{}\n", "info\n"}));
  EXPECT_EQ(written({.quiet = true, .progress = ProgressMode::kJson}), (Written{"", ""}));
  EXPECT_EQ(written({.json = true}), (Written{"{\"final\":0}\n", "info\nline\n"}));
  EXPECT_EQ(
      written({.tutorial = TutorialLines::kDemo, .progress = ProgressMode::kJson, .json = true}),
      (Written{"{\"final\":0}\n", "info\n{}\ntutorial\n"}));
  EXPECT_EQ(written({.prints = false, .json = true}), (Written{"", ""}));
}

TEST(Color, LabelsAtTheBeginningOfALineAlone) {
  EXPECT_EQ(with_color("lockstep: error: note: x\n  why: y\n"),
            "\x1b[1;31mlockstep: error:\x1b[0m note: x\n\x1b[1m  why:\x1b[0m y\n");
  EXPECT_EQ(with_color("Epoch: [0]"), "Epoch: [0]");
}

TEST(Color, OnTerminalsUnlessAskedFor) {
  EXPECT_EQ(color_choice("auto"), ColorChoice::kAuto);
  choose_color(color_choice("always"), true);
  EXPECT_EQ(painted(stderr, "note: x"), "\x1b[36mnote:\x1b[0m x");
  choose_color(color_choice("never"), false);
  EXPECT_EQ(painted(stderr, "note: x"), "note: x");
  choose_color(ColorChoice::kAuto, false);
}

TEST(Progress, ClockSurvivesNonsense) {
  EXPECT_EQ(clock_text(-1), "0:00:00");
  EXPECT_EQ(clock_text(std::numeric_limits<double>::infinity()), "0:00:00");
}

TEST(Progress, SaysWhatBecameOfTheLossScale) {
  EXPECT_EQ(overflow_line(true, 32768),
            "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0");
  EXPECT_EQ(overflow_line(false, 128), "Gradient overflow.  Skipping step, loss scale stays 128.0");
}

TEST(ApexLines, Item1_12AreThoseOfTutorial001) {
  EXPECT_EQ(apex_progress_line(3,
                               10,
                               770,
                               {.step_s = 0.0214,
                                .step_s_avg = 0.5,
                                .loss = 6.91234567891,
                                .loss_avg = 7.01239,
                                .acc1 = 0.125,
                                .acc1_avg = 12.3456,
                                .acc5 = 1,
                                .acc5_avg = 50,
                                .images_per_s = 1234.5,
                                .images_per_s_avg = 1000}),
            "Epoch: [3][10/770]\tTime 0.021 (0.500)\tThroughput 1234.500 (1000.000)\t"
            "Loss 6.9123456789 (7.0124)\tPrec@1 0.125 (12.346)\tPrec@5 1.000 (50.000)");
  EXPECT_EQ(apex_test_line(20,
                           50,
                           {.batch_s = 0.5,
                            .batch_s_avg = 0.25,
                            .images = 100,
                            .images_avg = 90,
                            .loss = 1.23456,
                            .loss_avg = 2,
                            .acc1 = 61.33,
                            .acc1_avg = 43.2,
                            .acc5 = 90,
                            .acc5_avg = 80.5}),
            "Test: [20/50]\tTime 0.500 (0.250)\tSpeed 200.000 (360.000)\tLoss 1.2346 (2.0000)\t"
            "Prec@1 61.330 (43.200)\tPrec@5 90.000 (80.500)");
  EXPECT_EQ(accuracy_line({.correct1 = 7615, .correct5 = 9287, .total = 10000}, true),
            " * Prec@1 76.150 Prec@5 92.870");
}

}  // namespace
}  // namespace lockstep::trainers::progress_test
