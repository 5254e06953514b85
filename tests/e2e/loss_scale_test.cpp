// Loss scaling in whole runs: its bits, its skipped steps, and its messages.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"

namespace lockstep::testing::loss_scale_test {
namespace {

using ::testing::HasSubstr;

// Ten steps in two epochs.
class LossScale : public ::testing::Test {
 protected:
  void SetUp() override { write_small_mnist(dir_ / "mnist", 160, 40); }

  Arguments line(const std::string& name, const Arguments& more) const {
    Arguments line = {"train_convnet", (dir_ / "mnist").string(), "--dataset", "mnist"};
    line.insert(line.end(), {"--epochs", "2", "--global-batch-size", "32", "--shards", "4"});
    line.insert(line.end(), {"--bn-groups", "2", "--lr-scheduler", "cosine", "--print-freq", "1"});
    line.insert(line.end(), {"-o", path(name).string()});
    line.insert(line.end(), more.begin(), more.end());
    return line;
  }
  ProgramResult run(int ranks,
                    const std::string& name,
                    const Arguments& more,
                    const std::string& fault = "") const {
    return run_ranks(ranks, line(name, more), {.environment = {{"LOCKSTEP_FAULT", fault}}});
  }
  std::filesystem::path path(const std::string& name) const { return dir_ / name; }
  std::string digest(const std::string& name) const {
    return read_json(path(name) / "run.json").at("digest");
  }

  const TempDir dir_;
};

TEST_F(LossScale, APowerOfTwoChangesNoBit) {
  ASSERT_EQ(run(1, "unscaled", {}).exit_code, 0);
  for (const char* scale : {"dynamic", "0.5"}) {
    const ProgramResult result = run(2, "scaled", {"--loss-scale", scale, "--overwrite"});
    ASSERT_EQ(result.exit_code, 0) << said(result);
    EXPECT_EQ(digest("scaled"), digest("unscaled")) << scale;
  }
}

TEST_F(LossScale, APlateauCutsTheRatesOfScaledStepsToo) {
  Arguments flags = {"--lr-scheduler", "plateau", "--plateau-patience", "0"};
  flags.insert(flags.end(), {"--plateau-threshold", "1", "--epochs", "3"});
  ASSERT_EQ(run(1, "unscaled", flags).exit_code, 0);
  flags.insert(flags.end(), {"--loss-scale", "1"});
  ASSERT_EQ(run(1, "scaled", flags).exit_code, 0);
  EXPECT_EQ(digest("scaled"), digest("unscaled"));
}

// If any rank's gradient overflows, all ranks skip the step and continue as if it had not happened.
TEST_F(LossScale, AllRanksSkipAStepThatOneRankSpoils) {
  const Arguments scaled = {"--loss-scale", "dynamic", "--opt", "adam", "--lr", "0.001"};
  const ProgramResult one = run(1, "one", scaled, "inf:rank=0,step=4,count=2");
  ASSERT_EQ(one.exit_code, 0) << said(one);
  for (const int ranks : {2, 3}) {
    const ProgramResult several =
        run(ranks,
            "several",
            {"--overwrite", "--loss-scale", "dynamic", "--opt", "adam", "--lr", "0.001"},
            fmt::format("inf:rank={},step=4,count=2", ranks - 1));
    ASSERT_EQ(several.exit_code, 0) << said(several);
    EXPECT_EQ(count_of(several.out, "Gradient overflow.  Skipping step, "), 2);
    EXPECT_THAT(several.out,
                HasSubstr("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to "
                          "32768.0\n"));
    EXPECT_THAT(several.out, HasSubstr("\tScale 16384 (2 skipped)\t"));
    if (ranks == 2) {
      EXPECT_EQ(digest("several"), digest("one"));
    }
  }
  std::vector<double> rates;
  for (const nlohmann::json& step : read_metrics(path("one"))) {
    if (step.at("split") == "train") rates.push_back(step.at("lr"));
  }
  ASSERT_EQ(rates.size(), 10U);
  EXPECT_EQ(rates[3], rates[5]);  // the schedule does not count a skipped step
  EXPECT_LT(rates[6], rates[5]);
  const nlohmann::json last = read_metrics(path("one")).at(9);
  EXPECT_EQ(last.at("loss_scale"), 16384);
  EXPECT_EQ(last.at("skipped_steps"), 2);
}

TEST_F(LossScale, StateIsSavedAndRestored) {
  const std::string fault = "inf:rank=0,step=2,count=3";
  const Arguments scaled = {"--loss-scale", "dynamic", "--opt", "adamw", "--lookahead"};
  ASSERT_EQ(run(1, "whole", scaled, fault).exit_code, 0);
  Arguments first = scaled;
  first.insert(first.end(), {"--max-steps", "4"});
  ASSERT_EQ(run(1, "parts", first, fault).exit_code, 0);
  Arguments second = scaled;
  second.insert(second.end(), {"--resume", "auto"});
  const ProgramResult resumed = run(2, "parts", second, fault);
  ASSERT_EQ(resumed.exit_code, 0) << said(resumed);
  EXPECT_EQ(digest("parts"), digest("whole"));
  EXPECT_THAT(resumed.out, HasSubstr("\tScale 8192 (3 skipped)\t"));
  EXPECT_EQ(count_of(resumed.out, "Gradient overflow"), 0) << "they were skipped before";
}

TEST_F(LossScale, AScaleThatAResumedRunIsGivenHolds) {
  ASSERT_EQ(run(1, "changed", {"--loss-scale", "dynamic", "--max-steps", "3"}).exit_code, 0);
  const ProgramResult resumed = run(1, "changed", {"--loss-scale", "128", "--resume", "auto"});
  ASSERT_EQ(resumed.exit_code, 0) << said(resumed);
  EXPECT_THAT(resumed.out, HasSubstr("\tScale 128 (0 skipped)\n"));
}

TEST_F(LossScale, StopsAfterFiftySkippedSteps) {
  const ProgramResult result = run(
      2, "stuck", {"--epochs", "20", "--loss-scale", "dynamic"}, "inf:rank=1,step=3,count=1000");
  EXPECT_EQ(result.exit_code, 6) << said(result);
  EXPECT_THAT(result.err, HasSubstr("50 steps in a row were skipped, up to step 52\n"));
  EXPECT_THAT(result.err, HasSubstr("each of them, at a loss scale of 1\n"));
}

TEST_F(LossScale, ARunThatAppliesNoStepFails) {
  const Arguments scaled = {"--loss-scale", "128", "--max-steps", "6"};
  const ProgramResult none = run(1, "none", scaled, "inf:rank=0,step=1,count=100");
  EXPECT_EQ(none.exit_code, 6) << said(none);
  EXPECT_THAT(none.err, HasSubstr("no step of the run was applied: all were skipped\n"));
  EXPECT_THAT(none.out, HasSubstr(" · 6 steps, of which 6 were skipped · "));
  EXPECT_EQ(read_json(path("none") / "run.json").at("exit_code"), 6);
  EXPECT_EQ(read_json(path("none") / "run.json").at("skipped_steps"), 6);

  const ProgramResult some =
      run(2, "none", {"--loss-scale", "128", "--resume", "auto", "--json"}, "inf:rank=0,step=8");
  EXPECT_EQ(some.exit_code, 0) << said(some);
  EXPECT_THAT(some.err, HasSubstr(" · 10 steps, of which 7 were skipped · "));
  EXPECT_EQ(nlohmann::json::parse(some.out).at("skipped_steps"), 7);
  const ProgramResult list = run_program({"lockstep", "runs", dir_.path().string()});
  EXPECT_THAT(list.out, HasSubstr("10 (7 skipped)"));
}

TEST_F(LossScale, RefusesOtherScales) {
  for (const char* scale : {"0", "-1", "big", "inf", "1e39"}) {
    const ProgramResult result = run_program(line("bad", {"--loss-scale", scale}));
    EXPECT_EQ(result.exit_code, 2) << said(result);
    EXPECT_THAT(result.err, HasSubstr(fmt::format("bad value: --loss-scale {}", scale)));
  }
}

}  // namespace
}  // namespace lockstep::testing::loss_scale_test
