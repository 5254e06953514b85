// The same bytes for 1, 2, 4 and 8 real ranks: 300 steps of the ConvNet.
#include "tests/e2e/training_runs.h"

namespace lockstep::testing {
namespace {

class SameBits : public ::testing::TestWithParam<const char*> {};

TEST_P(SameBits, OnOneTwoFourAndEightRanks) {
  const TempDir dir;
  for (const int ranks : {1, 2, 4, 8}) {
    const auto run = dir / std::to_string(ranks);
    const ProgramResult result = run_ranks(ranks,
                                           {"train_convnet",
                                            "--max-steps",
                                            "300",
                                            "--shards",
                                            "8",
                                            "--global-batch-size",
                                            "64",
                                            "--bn-groups",
                                            GetParam(),
                                            "-o",
                                            run.string()});
    ASSERT_EQ(result.exit_code, 0) << said(result);
    EXPECT_NE(result.out.find("same bits on 1,2,4,8 ranks"), std::string::npos) << result.out;
    const ProgramResult difference =
        run_program({"lockstep", "diff", weights(dir / "1"), weights(run)});
    EXPECT_EQ(difference.exit_code, 0) << ranks << " ranks\n" << said(difference);
    EXPECT_EQ(read_json(run / "run.json").at("final").at("loss"),
              read_json(dir / "1" / "run.json").at("final").at("loss"));
  }
}
INSTANTIATE_TEST_SUITE_P(Groups, SameBits, ::testing::Values("1", "8"));

}  // namespace
}  // namespace lockstep::testing
