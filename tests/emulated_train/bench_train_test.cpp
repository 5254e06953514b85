// bench_train --device cuda on the emulated machine.
#include "tests/emulated_train/programs.h"

namespace lockstep::testing::bench_train_cuda_test {
namespace {

const Arguments kTiny = {"bench_train_emulated", "-a", "convnet", "-b", "4", "--json"};
const Arguments kSteps = {
    "--num-warmup-batches", "4", "--num-batches-per-iter", "2", "--num-iters", "2"};

Arguments line(const Arguments& more) {
  Arguments all = kTiny;
  all.insert(all.end(), kSteps.begin(), kSteps.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

nlohmann::json measured(const Arguments& more, int ranks = 1) {
  const ProgramOptions options = {.environment = {{"LOCKSTEP_EMULATION_DEVICES", "2"}}};
  const ProgramResult result = run_on(ranks, line(more), options);
  EXPECT_EQ(result.exit_code, 0) << said(result);
  return nlohmann::json::parse(result.out, nullptr, false);
}

double loss(const nlohmann::json& json) {
  return json.at("loss");
}

TEST(BenchTrainOnCuda, BenchTrainStepsOnCudaWithResidentData) {
  const nlohmann::json cpu = measured({"--device", "cpu", "--threads", "1"});
  const nlohmann::json graph = measured({"--device", "cuda"});
  EXPECT_EQ(graph.at("device"), "cuda");
  EXPECT_EQ(graph.at("input"), "resident");
  EXPECT_TRUE(graph.at("graph").get<bool>());
  EXPECT_EQ(graph.at("images_per_s_by_iteration").size(), 2U);
  EXPECT_GT(graph.at("step_ms_median").get<double>(), 0);
  EXPECT_NEAR(loss(graph), loss(cpu), 1e-3 * loss(cpu));
  const nlohmann::json eager = measured({"--device", "cuda", "--no-graph"});
  EXPECT_FALSE(eager.at("graph").get<bool>());
  EXPECT_EQ(loss(eager), loss(graph));
}

TEST(BenchTrainOnCuda, BenchTrainTimesTheLoadersWayToo) {
  const nlohmann::json json = measured({"--device", "cuda", "--with-input", "-j", "1"});
  EXPECT_EQ(json.at("input"), "loader");
  EXPECT_NE(loss(json), loss(measured({"--device", "cuda"})));
}

TEST(BenchTrainOnCuda, BenchTrainStepsOnRanksThatMeetOverNccl) {
  const Arguments same = {"--device", "cuda", "--shards", "2", "--bn-groups", "2"};
  const nlohmann::json two = measured(same, 2);
  EXPECT_EQ(two.at("transport"), "nccl");
  EXPECT_TRUE(two.at("graph").get<bool>());
  Arguments one = same;
  one.insert(one.end(), {"-b", "8"});
  EXPECT_EQ(loss(two), loss(measured(one)));
}

TEST(StepAgainstCpu, AStepIsComparedWithTheCpuLayerByLayer) {
  for (const Arguments& precision :
       {Arguments{}, Arguments{"--opt-level", "O2", "--dtype", "f16"}}) {
    Arguments all = kTiny;
    all.insert(all.end(), {"--device", "cuda", "--against-cpu"});
    all.insert(all.end(), precision.begin(), precision.end());
    const ProgramResult result = run_program(all);
    ASSERT_EQ(result.exit_code, 0) << said(result);
    const nlohmann::json json = nlohmann::json::parse(result.out);
    EXPECT_GT(json.at("compared"), 30) << result.out;
    EXPECT_LE(json.at("largest_difference"), json.at("tolerance"));
    EXPECT_GT(json.at("largest_difference"), 0) << "nothing is compared";
  }
  Arguments on_cpu = kTiny;
  on_cpu.push_back("--against-cpu");
  EXPECT_EQ(run_program(on_cpu).exit_code, 2);
}

}  // namespace
}  // namespace lockstep::testing::bench_train_cuda_test
