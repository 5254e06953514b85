// bench_train as users start it.
#include <algorithm>

#include "tests/e2e/training_runs.h"

namespace lockstep::testing::bench_train_test {
namespace {

Arguments bench(const Arguments& more) {
  Arguments line = {"bench_train", "-a", "convnet", "-b", "4", "--threads", "1"};
  line.insert(line.end(), {"--num-warmup-batches", "1", "--num-batches-per-iter", "2"});
  line.insert(line.end(), {"--num-iters", "3"});
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

TEST(BenchTrain, SpeaksAsHorovodsBenchmark) {
  const ProgramResult result = run_program(bench({}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(count_of(result.out, "Iter #"), 3) << result.out;
  EXPECT_EQ(count_of(result.out, "Img/sec per CPU: "), 1) << result.out;
  EXPECT_EQ(count_of(result.out, "Total img/sec on 1 CPU(s): "), 1) << result.out;
}

// Standard output must hold only the JSON object.
TEST(BenchTrain, TwoRanksGiveOneJsonObject) {
  const ProgramResult result = run_ranks(2, bench({"--json", "--sync-bn"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("ranks"), 2);
  EXPECT_EQ(json.at("threads"), 1);
  EXPECT_EQ(json.at("global_batch"), 8);
  EXPECT_EQ(json.at("bn_groups"), 1);
  EXPECT_EQ(json.at("parameters"), 29034);
  EXPECT_EQ(json.at("transport"), "shm");
  EXPECT_GT(json.at("images_per_s").get<double>(), 0);
  EXPECT_EQ(json.at("images_per_s_by_iteration").size(), 3U);
  EXPECT_GT(json.at("step_ms_median").get<double>(), 0);
  EXPECT_GT(json.at("comm_exposed_ms").get<double>(), 0);
  EXPECT_GT(json.at("first_step_s").get<double>(), 0);
  const auto by_rank = json.at("peak_rss_mib_by_rank").get<std::vector<double>>();
  ASSERT_EQ(by_rank.size(), 2U);
  EXPECT_GT(std::ranges::min(by_rank), 5);
  EXPECT_EQ(json.at("peak_rss_mib"), std::ranges::max(by_rank));
  EXPECT_EQ(count_of(result.err, "Iter #"), 3) << result.err;
}

TEST(BenchTrain, ResNetsGetTheImagesTheyAreFor) {
  const ProgramResult result = run_program(bench({"-a", "resnet20", "--json"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("arch"), "resnet20");
  EXPECT_EQ(json.at("parameters"), 269722);
  EXPECT_EQ(json.at("image"), nlohmann::json({3, 32, 32}));
}

TEST(BenchTrainRefuses, WhatItCannotDoOnceWithExit2) {
  for (const Arguments& arguments : {Arguments{"-a", "oaknet"},
                                     {"--num-iters", "0"},
                                     {"--opt-level", "O4"},
                                     {"--shards", "1"}}) {
    const ProgramResult result = run_ranks(2, bench(arguments));
    EXPECT_EQ(result.exit_code, 2) << said(result);
    EXPECT_EQ(count_of(result.err, "lockstep: error: "), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

}  // namespace
}  // namespace lockstep::testing::bench_train_test
