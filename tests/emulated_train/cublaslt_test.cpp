// --device cuda with linear layers by the fake machine's cuBLASLt.
#include "tests/emulated_train/programs.h"

namespace lockstep::testing::cublaslt_test {
namespace {

class OverCublaslt : public EmulatedProgram {
 protected:
  ProgramResult run(int ranks, const std::string& name, const Arguments& more = {}) const {
    Arguments line = on_cuda(
        name,
        {"--global-batch-size", "8", "--shards", "4", "--bn-groups", "4", "--max-steps", "4"});
    line.insert(line.end(), more.begin(), more.end());
    const ProgramOptions options = {.environment = {{"LOCKSTEP_EMULATION_DEVICES", "4"},
                                                    {"LOCKSTEP_EMULATION_STREAMS", "lazy"},
                                                    {"LOCKSTEP_EMULATION_CUBLASLT", cublaslt_}}};
    return run_on(ranks, line, options);
  }
  static void expect_error(const ProgramResult& result, const std::string& what) {
    EXPECT_EQ(result.exit_code, 5) << said(result);
    EXPECT_NE(result.err.find(what), std::string::npos) << result.err;
    EXPECT_GE(count_of(result.err, "\n  try: "), 1) << result.err;
  }

  std::string cublaslt_ = "on";
};

TEST_F(OverCublaslt, RanksGiveTheBitsOfOneInAGraphAndWithoutOne) {
  for (const Arguments& level : {Arguments{"--opt-level", "O0"}, Arguments{"--opt-level", "O2"}}) {
    const std::string one = level[1] + "-1";
    expect_success(run(1, one, level));
    const std::string several = level[1] + "-several";
    expect_success(run(level[1] == "O0" ? 2 : 4, several, level));
    SCOPED_TRACE(several);
    expect_same_bits(dir_ / one, dir_ / several);
    Arguments eager = level;
    eager.push_back("--no-graph");
    expect_success(run(1, level[1] + "-eager", eager));
    expect_same_bits(dir_ / one, dir_ / (level[1] + "-eager"));
  }
}

// Other sums of the same products: near, but not the same bits, or it was not asked.
TEST_F(OverCublaslt, LearnsWhatOurOwnTilesLearn) {
  expect_success(run(1, "library"));
  cublaslt_.clear();
  expect_success(run(1, "tiles"));
  const std::vector<double> want = losses("tiles");
  const std::vector<double> got = losses("library");
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;
  const ProgramResult difference =
      run_program({"lockstep", "diff", weights(dir_ / "library"), weights(dir_ / "tiles")});
  EXPECT_EQ(difference.exit_code, 1) << said(difference);
}

TEST_F(OverCublaslt, SaysWhatIsWrongWithTheOneThatItFinds) {
  cublaslt_ = "old-version";
  expect_error(run(1, "run"), "error: cuBLASLt is too old\n  why: it is 12.3.4");
  cublaslt_ = "lacks-a-function";
  expect_error(run(1, "run", {"--overwrite"}), "why: it has no function cublasLt");
  cublaslt_ = "no-algorithm:f16";
  expect_error(run(1, "run", {"--overwrite", "--opt-level", "O2"}),
               "error: cuBLASLt has no algorithm for a product of linear\n  why: forward f16 2x");
}

// It is among what a run is made of, as cuDNN is on hardware.
TEST_F(OverCublaslt, VersionsAreRecordedAndCompared) {
  expect_success(run(2, "run"));
  EXPECT_EQ(read_json(dir_ / "run" / "run.json").at("versions").at("cublaslt"), "13.1.0");
  Arguments line = {"sh",
                    "-c",
                    "[ $OMPI_COMM_WORLD_RANK = 0 ] || LOCKSTEP_EMULATION_CUBLASLT=newer-version; "
                    "export LOCKSTEP_EMULATION_CUBLASLT; exec \"$@\"",
                    "sh",
                    path_of_program("train_convnet_emulated")};
  const Arguments rest = on_cuda("other");
  line.insert(line.end(), rest.begin() + 1, rest.end());
  const ProgramResult result =
      run_ranks(2, line, {.environment = {{"LOCKSTEP_EMULATION_CUBLASLT", "on"}}});
  expect_error(result, "cublaslt 13.1.0");
  EXPECT_NE(result.err.find("cublaslt 13.2.0"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace lockstep::testing::cublaslt_test
