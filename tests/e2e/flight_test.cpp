// Planted faults of ranks, and the verdicts of lockstep flight. tests/long/flight_verdicts.sh runs
// each ten times.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/e2e/photo_runs.h"

namespace lockstep::testing::flight_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FlightRun : public ::testing::Test {
 protected:
  // Runs three ranks with a fault. Returns the run's result and then the output of lockstep flight.
  std::pair<ProgramResult, std::string> run(const std::string& fault,
                                            int exit_code = 75,
                                            const Arguments& more = {}) const {
    Arguments line = convnet(dir_ / "run", {"--threads", "1", "--stall-abort", "1", "--no-eval"});
    line.insert(line.end(), more.begin(), more.end());
    const ProgramResult result = run_ranks(3, line, {.environment = {{"LOCKSTEP_FAULT", fault}}});
    EXPECT_EQ(result.exit_code, exit_code) << said(result);
    const ProgramResult told = run_program({"lockstep", "flight", (dir_ / "run").string()});
    EXPECT_EQ(told.exit_code, 0) << said(told);
    EXPECT_LE(count_of(told.out, "\n"), 10);
    return {result, told.out};
  }

  const TempDir dir_;
};

TEST_F(FlightRun, AStoppedRankIsNamedByTheErrorToo) {
  const auto [result, told] = run("stop:rank=1,step=3");
  EXPECT_THAT(told,
              HasSubstr("\nverdict  rank 1 is stopped by a signal; ranks 0, 2 wait for it in"));
  EXPECT_EQ(count_of(result.err, "  verdict: rank 1 is stopped by a signal; "), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("\n  see: lockstep flight " + (dir_ / "run").string() + "\n"));
}

TEST_F(FlightRun, AKilledRankIsNamed) {
  EXPECT_THAT(run("kill:rank=1,step=3", 137).second,
              HasSubstr("verdict  rank 1 crashed or was killed: its process is gone"));
}

TEST_F(FlightRun, ALayerThatNeverEndsIsNamed) {
  EXPECT_THAT(run("loop:rank=1,step=3,layer=layer2.0").second,
              HasSubstr("verdict  rank 1 is in forward, layer layer2.0 for "));
}

TEST_F(FlightRun, ASkippedCallIsNamed) {
  EXPECT_THAT(run("skip:rank=1,step=3").second,
              HasSubstr("verdict  rank 1 skipped a collective call: "));
}

TEST_F(FlightRun, NobodyIsBlamedForALostMessage) {
  const std::string told = run("lost:rank=1,step=3").second;
  EXPECT_THAT(told, HasSubstr("verdict  a message was lost"));
  EXPECT_THAT(told, HasSubstr("ranks 0, 1, 2 are in it"));
}

TEST_F(FlightRun, ASlowPhotoIsNamed) {
  write_image_folders(dir_ / "photos", 16);
  const auto verdict = [&](const std::string& fault) {
    Arguments line =
        resnet20(dir_ / "photos", dir_ / fault, {"--max-steps", "3", "--no-eval", "-j", "1"});
    line.insert(line.end(), {"--threads", "1", "--stall-abort", "1"});
    const std::string text = fault + ":ms=9000,rank=1";
    const ProgramResult result = run_ranks(2, line, {.environment = {{"LOCKSTEP_FAULT", text}}});
    EXPECT_EQ(result.exit_code, 75) << said(result);
    return run_program({"lockstep", "flight", (dir_ / fault).string()}).out;
  };
  EXPECT_THAT(verdict("slowdecode"),
              HasSubstr("rank 1 waits for its loader, whose thread 0 decodes a photo for"));
  EXPECT_THAT(verdict("slowdisk"),
              HasSubstr("rank 1 waits for its loader, whose thread 0 reads a photo from the disk"));
}

TEST_F(FlightRun, AnUndisturbedRunGetsNoVerdict) {
  const auto [result, told] = run("", 0, {"--max-steps", "5"});
  EXPECT_THAT(told, HasSubstr("no verdict: the run ended by itself"));
  EXPECT_THAT(result.err, Not(HasSubstr("lockstep flight")));
}

}  // namespace
}  // namespace lockstep::testing::flight_test
