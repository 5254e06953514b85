// Mixed precision in whole runs.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

struct Level {
  std::string name;
  Arguments precision;
  Arguments others;
  int ranks;  // beside one

  friend void PrintTo(const Level& level, std::ostream* out) { *out << level.name; }
};

class Levels : public ::testing::TestWithParam<Level> {};

// Eight steps of ConvNet: near those in f32, and with the same bits on other ranks and after a
// resumption.
TEST_P(Levels, TrainWithTheSameBits) {
  const TempDir dir;
  write_small_mnist(dir / "mnist", 256, 40);
  const auto line = [&](const std::string& name, const Arguments& more) {
    Arguments arguments = {"train_convnet", (dir / "mnist").string(), "--dataset", "mnist"};
    arguments.insert(arguments.end(),
                     {"--epochs", "1", "--global-batch-size", "32", "--shards", "8"});
    arguments.insert(arguments.end(),
                     {"--lr", "0.002", "--print-freq", "1", "-o", (dir / name).string()});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const auto& [name, precision, others, ranks] = GetParam();
  ASSERT_EQ(run_program(line("f32", others)).exit_code, 0);
  Arguments flags = others;
  flags.insert(flags.end(), precision.begin(), precision.end());
  const ProgramResult one = run_program(line("one", flags));
  ASSERT_EQ(one.exit_code, 0) << said(one);
  Arguments stopped = flags;
  stopped.insert(stopped.end(), {"--max-steps", "3"});
  ASSERT_EQ(run_ranks(ranks, line("several", stopped)).exit_code, 0);
  Arguments resumed = flags;
  resumed.insert(resumed.end(), {"--resume", "auto"});
  const ProgramResult several = run_ranks(ranks, line("several", resumed));
  ASSERT_EQ(several.exit_code, 0) << said(several);
  EXPECT_EQ(read_json(dir / "one" / "run.json").at("digest"),
            read_json(dir / "several" / "run.json").at("digest"));
  EXPECT_NE(read_json(dir / "one" / "run.json").at("digest"),
            read_json(dir / "f32" / "run.json").at("digest"));
  const auto exact = read_metrics(dir / "f32");
  const auto rounded = read_metrics(dir / "one");
  ASSERT_EQ(rounded.size(), exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(rounded[i].at("loss").get<double>(), exact[i].at("loss").get<double>(), 0.1);
  }
}
INSTANTIATE_TEST_SUITE_P(
    OptLevels,
    Levels,
    ::testing::Values(
        Level{"O1", {"--opt-level", "O1"}, {"--bn-groups", "4"}, 2},
        Level{"O1bf16", {"--opt-level", "O1", "--dtype", "bf16"}, {"--sync-bn"}, 4},
        Level{"O2", {"--opt-level", "O2"}, {"--bn-groups", "4"}, 4},
        Level{"O2bf16", {"--opt-level", "O2", "--dtype", "bf16"}, {"--bn-groups", "2"}, 2},
        Level{"O2wire16", {"--fp16"}, {"--fp16-allreduce", "--bn-groups", "8", "--lookahead"}, 8},
        Level{"O3", {"--opt-level", "O3", "--loss-scale", "1024"}, {"--bn-groups", "4"}, 2},
        Level{"O3bf16", {"--opt-level", "O3", "--dtype", "bf16"}, {"--sync-bn"}, 8}),
    ::testing::PrintToStringParamName());

TEST(Precision, WeightsAreEvaluatedInIt) {
  const TempDir dir;
  const auto correct = [&](const std::string& name) {
    return read_json(dir / name / "run.json").at("final").at("correct").get<int>();
  };
  ASSERT_EQ(run_program(convnet(dir / "run", {"--fp16"})).exit_code, 0);
  const Arguments line = {
      "train_convnet", "--evaluate", "--pretrained", weights(dir / "run"), "--fp16"};
  Arguments evaluate = line;
  evaluate.insert(evaluate.end(), {"-o", (dir / "evaluated").string()});
  const ProgramResult result = run_ranks(2, evaluate);
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(correct("evaluated"), correct("run"));
}

TEST(Precision, IsExplained) {
  const TempDir dir;
  const ProgramResult result = run_ranks(
      2, convnet(dir / "run", {"--opt-level", "O2", "--dtype", "bf16", "--explain-precision"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(count_of(result.out, "precision of --opt-level O2\n"), 1) << result.out;
  EXPECT_EQ(count_of(result.out, "  conv, linear: weights they read    bf16\n"), 1) << result.out;
  EXPECT_FALSE(std::filesystem::exists(dir / "run"));
}

}  // namespace
}  // namespace lockstep::testing
