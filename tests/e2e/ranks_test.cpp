// Several real ranks under mpirun: they finish, agree, and end together.
#include "tests/e2e/training_runs.h"

namespace lockstep::testing::ranks_test {
namespace {

class Ranks : public ::testing::TestWithParam<int> {};

TEST_P(Ranks, FinishAndCountEachTestImageOnce) {
  const TempDir dir;
  const ProgramResult result = run_ranks(GetParam(), convnet(dir / "run", {"-b", "16"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const nlohmann::json record = read_json(dir / "run" / "run.json");
  EXPECT_EQ(record.at("final").at("total"), 500);
  EXPECT_EQ(std::ssize(record.at("ranks")), GetParam());
  EXPECT_EQ(count_of(result.out, "Accuracy is"), 1);
}
INSTANTIATE_TEST_SUITE_P(Counts, Ranks, ::testing::Values(1, 2, 3, 7, 8));

TEST(RanksTogether, DifferingWeightsAreNamedWithExit6) {
  const TempDir dir;
  const ProgramResult result = run_ranks(
      3, convnet(dir / "run"), {.environment = {{"LOCKSTEP_FAULT", "flipbit:rank=1,step=19"}}});
  EXPECT_EQ(result.exit_code, 6) << said(result);
  EXPECT_EQ(count_of(result.err, "rank 1 differs in layer1.0.weight at element 0"), 1)
      << result.err;
}

TEST(RanksTogether, AKilledRankEndsTheJob) {
  const TempDir dir;
  const ProgramResult result =
      run_ranks(2,
                convnet(dir / "run", {"--max-steps", "100000", "--epochs", "1000"}),
                {.environment = {{"LOCKSTEP_FAULT", "kill:rank=1,step=7"}}, .limit_s = 30});
  EXPECT_EQ(result.exit_code, 137) << said(result);
  EXPECT_LT(result.seconds, 20);
}

TEST(RanksTogether, AStoppedRankEndsTheJobAtTheDeadlineWithExit75) {
  const TempDir dir;
  const ProgramResult result = run_ranks(
      2,
      convnet(dir / "run", {"--max-steps", "100000", "--epochs", "1000", "--stall-abort", "2"}),
      {.environment = {{"LOCKSTEP_FAULT", "stop:rank=1,step=7"}}, .limit_s = 40});
  EXPECT_EQ(result.exit_code, 75) << said(result);
  EXPECT_GE(count_of(result.err, "only slow; --stall-abort SECONDS waits longer\n"), 1)
      << result.err;
  EXPECT_GE(count_of(result.err, "lockstep: error: rank 0 gave up waiting in all_reduce #"), 1)
      << result.err;
  EXPECT_GE(count_of(result.err, "(bucket 0 (10 tensors, fc.bias to layer1.0.weight"), 1)
      << result.err;
  EXPECT_GE(count_of(result.err, "rank 1 did not take part"), 1) << result.err;
}

TEST(RanksTogether, DifferentArgumentsAreRefusedOnce) {
  const TempDir dir;
  const std::string program = path_of_program("train_convnet");
  const std::string run = (dir / "run").string();
  const ProgramResult result = run_ranks(
      1, {program, "--lr", "0.1", "-o", run, ":", "-np", "1", program, "--lr", "0.2", "-o", run});
  EXPECT_EQ(result.exit_code, 2) << said(result);
  EXPECT_EQ(count_of(result.err, "lockstep: error:"), 1) << result.err;
  EXPECT_EQ(count_of(result.err, "rank 1 has --lr=0.2, rank 0 has --lr=0.1"), 1) << result.err;
  EXPECT_FALSE(std::filesystem::exists(dir / "run"));
}

TEST(RanksTogether, UnderAnotherMpisLauncherIsRefused) {
  const TempDir dir;
  const ProgramResult result =
      run_program(convnet(dir / "run"), {.environment = {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}});
  EXPECT_EQ(result.exit_code, 5) << said(result);
  EXPECT_FALSE(std::filesystem::exists(dir / "run"));
}

}  // namespace
}  // namespace lockstep::testing::ranks_test
