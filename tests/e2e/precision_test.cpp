// Mixed precision in whole runs.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/e2e/pairwise.h"
#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"

namespace lockstep::testing::precision_test {
namespace {

struct Combination {
  std::string level, dtype;
  std::string norm;  // batch norm: "groups" of four, or "sync"
  std::string wire;  // "level" for the level's own, or "fp16"
  int ranks;         // compared with one rank
  Arguments others = {};

  Factors factors() const { return {level, dtype, norm, wire, std::to_string(ranks)}; }
  Arguments flags() const {
    Arguments flags = others;
    if (level != "O0") flags.insert(flags.end(), {"--opt-level", level, "--dtype", dtype});
    if (level == "O3" && dtype == "f16") flags.insert(flags.end(), {"--loss-scale", "1024"});
    if (norm == "sync") flags.emplace_back("--sync-bn");
    if (norm == "groups") flags.insert(flags.end(), {"--bn-groups", "4"});
    if (wire == "fp16") flags.emplace_back("--fp16-allreduce");
    return flags;
  }
  friend void PrintTo(const Combination& of, std::ostream* out) {  // NOLINT: GoogleTest's
    *out << of.level << of.dtype << of.norm << of.wire << of.ranks;
  }
};

std::vector<Combination> pairwise() {
  return {{"O0", "f32", "groups", "level", 2},
          {"O0", "f32", "sync", "fp16", 4},
          {"O0", "f32", "groups", "fp16", 8},
          {"O1", "f16", "sync", "fp16", 2},
          {"O1", "bf16", "groups", "level", 4},
          {"O1", "f16", "sync", "level", 8},
          {"O2", "bf16", "groups", "fp16", 2},
          {"O2", "f16", "sync", "level", 4},
          {"O2", "bf16", "sync", "fp16", 8, {"--lookahead"}},
          {"O3", "bf16", "sync", "level", 2},
          {"O3", "f16", "groups", "fp16", 4},
          {"O3", "f16", "groups", "level", 8}};
}

// Only O0 combines with f32.
TEST(Precision, CombinationsAreAPairwiseCover) {
  std::vector<Factors> rows;
  for (const Combination& row : pairwise()) rows.push_back(row.factors());
  expect_pairwise_cover(rows, [](size_t i, const auto& a, size_t j, const auto& b) {
    return i == 0 && j == 1 && (a == "O0") != (b == "f32");
  });
}

class Combinations : public ::testing::TestWithParam<Combination> {};

// Eight steps of ConvNet. The results are close to those in f32, and have the same bits on other
// numbers of ranks and after a resume.
TEST_P(Combinations, TrainWithTheSameBits) {
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
  const Arguments flags = GetParam().flags();
  const ProgramResult one = run_program(line("one", flags));
  ASSERT_EQ(one.exit_code, 0) << said(one);
  Arguments stopped = flags;
  stopped.insert(stopped.end(), {"--max-steps", "3"});
  ASSERT_EQ(run_ranks(GetParam().ranks, line("several", stopped)).exit_code, 0);
  Arguments resumed = flags;
  resumed.insert(resumed.end(), {"--resume", "auto"});
  const ProgramResult several = run_ranks(GetParam().ranks, line("several", resumed));
  ASSERT_EQ(several.exit_code, 0) << said(several);
  const nlohmann::json digest = read_json(dir / "one" / "run.json").at("digest");
  EXPECT_EQ(read_json(dir / "several" / "run.json").at("digest"), digest);

  if (GetParam().level == "O0") return;
  Combination in_f32 = GetParam();
  in_f32.level = "O0";
  ASSERT_EQ(run_program(line("f32", in_f32.flags())).exit_code, 0);
  EXPECT_NE(read_json(dir / "f32" / "run.json").at("digest"), digest);
  const auto exact = read_metrics(dir / "f32");
  const auto rounded = read_metrics(dir / "one");
  ASSERT_EQ(rounded.size(), exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(rounded[i].at("loss").get<double>(), exact[i].at("loss").get<double>(), 0.1);
  }
}
INSTANTIATE_TEST_SUITE_P(Pairwise,
                         Combinations,
                         ::testing::ValuesIn(pairwise()),
                         ::testing::PrintToStringParamName());

TEST(Precision, WeightsAreEvaluatedInIt) {
  const TempDir dir;
  const auto figures = [&](const std::string& name) {
    const nlohmann::json final = read_json(dir / name / "run.json").at("final");
    return std::pair(final.at("correct").get<int>(), final.at("loss").get<double>());
  };
  ASSERT_EQ(run_program(convnet(dir / "run", {"--fp16"})).exit_code, 0);
  for (const Arguments& more : {Arguments{}, Arguments{"--fp16"}, Arguments{"--opt-level", "O0"}}) {
    Arguments evaluate = {"train_convnet", "--evaluate", "--pretrained", weights(dir / "run")};
    evaluate.insert(evaluate.end(), {"--data", small_digits(), "--dataset", "mnist"});
    evaluate.insert(evaluate.end(), {"--overwrite", "-o", (dir / "evaluated").string()});
    evaluate.insert(evaluate.end(), more.begin(), more.end());
    const ProgramResult result = run_ranks(2, evaluate);
    ASSERT_EQ(result.exit_code, 0) << said(result);
    const bool in_f32 = more.size() == 2;
    EXPECT_EQ(figures("evaluated") == figures("run"), !in_f32);
    EXPECT_EQ(count_of(result.err, "note: --opt-level O0 as given; "), in_f32 ? 1 : 0)
        << result.err;
  }
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
}  // namespace lockstep::testing::precision_test
