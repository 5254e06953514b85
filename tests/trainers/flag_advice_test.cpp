#include "trainers/report/flag_advice.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/options/flag_table.h"
#include "trainers/report/errors.h"

namespace lockstep::trainers::flag_advice_test {
namespace {

TEST(FlagAdvice, TheTrainersHaveFlagsForEveryRemedy) {
  EXPECT_EQ(trainer_advice(Remedy::kNone), "");
  for (int i = 1; i <= static_cast<int>(kLastRemedy); ++i) {
    std::istringstream words{std::string(trainer_advice(static_cast<Remedy>(i)))};
    int flags = 0;
    for (std::string word; words >> word;) {
      if (!word.starts_with('-')) continue;
      ++flags;
      EXPECT_NE(find_flag(word), nullptr) << word;
    }
    EXPECT_GT(flags, 0) << i;
  }
}

// Returns the advice for a run with these flags on this host.
std::vector<std::string> advice(const std::string& line,
                                Program program = Program::kTrainConvnet,
                                const HostShare& host = {2, 2, 1}) {
  const RunRequest request = make_run_request(testing::options_of(line, {}, program));
  return run_advice(request, {.ranks = 1, .images = 256, .shards = 128}, 255, host);
}

auto one_line(const std::string& part) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  return ::testing::ElementsAre(AllOf(HasSubstr("lockstep: warning: "), HasSubstr(part)));
}
const auto kQuiet = ::testing::IsEmpty();

TEST(RunAdvice, WarmUpLongerThanTheRun) {
  EXPECT_THAT(advice("--warmup-epochs 10 --epochs 5"),
              one_line("--warmup-epochs 10 take up the whole run of --epochs 5"));
  EXPECT_THAT(advice("--warmup-epochs 4 --epochs 5"), kQuiet);
  EXPECT_THAT(advice(""), kQuiet);
}

// Item 3.10.
TEST(RunAdvice, VggAndAlexNetWantASmallRate) {
  const auto of = [](const std::string& line) {
    return advice("--dummy " + line, Program::kTrainResnet);
  };
  EXPECT_THAT(of("-a vgg16 --lr 0.1"), one_line("vgg16 seldom learns at a rate of 0.1: --lr 0.01"));
  EXPECT_THAT(of("-a alexnet --lr 0.2"), one_line("alexnet"));
  EXPECT_THAT(of("-a vgg16_bn --lr 0.01"), kQuiet);
  EXPECT_THAT(of("-a vgg16 --opt adam --lr 0.1"), kQuiet);
  EXPECT_THAT(of("-a resnet18 --lr 0.1"), kQuiet);
}

// Item 1.14.
TEST(RunAdvice, BatchesOf16BitNetworksAreMultiplesOfEight) {
  EXPECT_THAT(advice("--dummy -a resnet18 -b 209", Program::kTrainResnet),
              one_line("-b 209 is not a multiple of 8, fastest for 16-bit products on GPUs: "
                       "-b 208"));
  EXPECT_THAT(advice("--dummy -a resnet18 -b 224", Program::kTrainResnet), kQuiet);
  EXPECT_THAT(advice("--amp -b 100"), one_line("-b 100"));
  EXPECT_THAT(advice("-b 100"), kQuiet);
  EXPECT_THAT(advice("--amp -b 4"), kQuiet);
}

// Item 1.8.
TEST(RunAdvice, LoaderThreadsBeyondTheCores) {
  EXPECT_THAT(advice("-j 64"),
              one_line("-j 64 on 1 rank makes 64 loader threads on 2 cores: -j 2"));
  EXPECT_THAT(advice("-j 8", Program::kTrainConvnet, {2, 16, 8}),
              one_line("-j 8 on 8 ranks makes 64 loader threads on 16 cores: -j 2"));
  EXPECT_THAT(advice("-j 8", Program::kTrainConvnet, {64, 64, 8}), kQuiet);
  EXPECT_THAT(advice("", Program::kTrainConvnet, {1, 1, 1}), kQuiet);
}

// Item 0.14.
TEST(RunAdvice, AMetricThatImprovesAgainstTheMode) {
  const std::string plateau = "--lr-scheduler plateau ";
  EXPECT_THAT(advice(plateau + "--plateau-on acc --plateau-mode min"),
              one_line("--plateau-on acc improves upwards, and --plateau-mode min cuts the rate "
                       "because it does: --plateau-mode max"));
  EXPECT_THAT(advice(plateau + "--plateau-mode max"), one_line("--plateau-on loss improves down"));
  EXPECT_THAT(advice(plateau), kQuiet);
  EXPECT_THAT(advice(plateau + "--plateau-on acc"), kQuiet);
  EXPECT_THAT(advice(plateau + "--plateau-on acc --plateau-mode max"), kQuiet);
}

TEST(RunAdvice, EarlyStoppingBeforeAPlateausCut) {
  const std::string plateau = "--lr-scheduler plateau --plateau-patience 3 --early-stopping ";
  EXPECT_THAT(advice(plateau + "4"), one_line("--plateau-patience 3 cuts the rate: --early-stop"));
  for (const char* quiet : {"5", "0", "1 --plateau-on acc"}) {
    EXPECT_THAT(advice(plateau + quiet), kQuiet) << quiet;
  }
  EXPECT_THAT(advice("--early-stopping 1"), kQuiet);
}

TEST(RunAdvice, ImagesThatAreNotMixed) {
  EXPECT_THAT(advice("--mixup 0.2"), one_line("1 of the 255 images of a step stay unmixed"));
}

TEST(FlagAdvice, TheToolNamesItsOwnFlagsAlone) {
  EXPECT_NE(tool_advice(Remedy::kPlanFile).find("lockstep plan --plan-file"), std::string::npos);
  EXPECT_EQ(tool_advice(Remedy::kCpu), "");
}

}  // namespace
}  // namespace lockstep::trainers::flag_advice_test
