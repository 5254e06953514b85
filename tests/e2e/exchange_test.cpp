// Gradient exchange as a user sees it: accumulation, algorithms, the audit, and ranks that others
// wait for.
#include <regex>
#include <utility>

#include "tests/e2e/training_runs.h"

namespace lockstep::testing::exchange_test {
namespace {

std::vector<nlohmann::json> training_lines(const std::filesystem::path& run) {
  std::vector<nlohmann::json> lines = read_metrics(run);
  std::erase_if(lines, [](const nlohmann::json& line) { return line.at("split") != "train"; });
  return lines;
}

// The columns of the log without times.
std::vector<std::string> learning_columns(const std::string& out) {
  const std::regex pattern(R"(Epoch: \S+ *\d+/\d+\].*\t(Loss .*)\timg/s)");
  std::vector<std::string> columns;
  for (std::sregex_iterator match(out.begin(), out.end(), pattern), end; match != end; ++match) {
    columns.push_back((*match)[1]);
  }
  return columns;
}

// DDP on 8 ranks equals one rank that accumulates 8 micro-steps, including the log.
TEST(Exchange, MicroStepsOfOneRankAreTheShardsOfEight) {
  const TempDir dir;
  const Arguments common = {"--global-batch-size", "64", "--print-freq", "1", "--shards"};
  const auto run = [&](int ranks, const char* name, const Arguments& more) {
    Arguments line = common;
    line.insert(line.end(), more.begin(), more.end());
    return run_ranks(ranks, convnet(dir / name, line));
  };
  const ProgramResult eight = run(8, "ranks", {"8", "--bn-groups", "8"});
  ASSERT_EQ(eight.exit_code, 0) << said(eight);
  const ProgramResult one =
      run(1, "micro", {"1", "--bn-groups", "1", "--batches-per-allreduce", "8"});
  ASSERT_EQ(one.exit_code, 0) << said(one);

  const ProgramResult difference =
      run_program({"lockstep", "diff", weights(dir / "ranks"), weights(dir / "micro")});
  EXPECT_EQ(difference.exit_code, 0) << said(difference);
  EXPECT_EQ(learning_columns(eight.out).size(), 20U) << eight.out;
  EXPECT_EQ(learning_columns(one.out), learning_columns(eight.out));
}

TEST(Exchange, AccumulationKeepsItsArithmetic) {
  const TempDir dir;
  const ProgramResult result =
      run_ranks(2, convnet(dir / "run", {"-b", "8", "--batches-per-allreduce", "4"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_NE(result.out.find("64 images per step in 4 micro-steps"), std::string::npos)
      << result.out;
  const nlohmann::json record = read_json(dir / "run" / "run.json");
  EXPECT_EQ(record.at("run").at("micro_steps"), 4);
  EXPECT_EQ(record.at("run").at("global_batch"), 64);
  for (const nlohmann::json& rank : record.at("communication").at("ranks")) {
    EXPECT_EQ(rank.at("images"), 20 * 32);
  }
}

TEST(Exchange, RunJsonSaysWhatWasExchanged) {
  const TempDir dir;
  const ProgramResult result = run_ranks(4, convnet(dir / "run", {"--transport", "shm"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const nlohmann::json record = read_json(dir / "run" / "run.json");
  const nlohmann::json& run = record.at("run");
  EXPECT_EQ(run.at("algorithm"), "tree");
  EXPECT_EQ(run.at("transport"), "shm");
  EXPECT_EQ(run.at("wire"), "f32");
  ASSERT_EQ(run.at("buckets").size(), 1U);
  EXPECT_EQ(run.at("buckets")[0], nlohmann::json({{"tensors", 10}, {"bytes", 29034 * 4}}));

  const nlohmann::json& communication = record.at("communication");
  ASSERT_EQ(communication.at("ranks").size(), 4U);
  for (const nlohmann::json& rank : communication.at("ranks")) {
    const auto reduced = rank.at("reduced_bytes").get<int64_t>();
    EXPECT_GE(reduced, 29034 * 4);
    EXPECT_LT(reduced, 29034 * 4 + 10 * 256);
    EXPECT_EQ(rank.at("moved_bytes"), reduced * 2 * 3 / 4);
    EXPECT_GT(rank.at("own_s").get<double>(), 0);
    EXPECT_EQ(rank.at("images"), 20 * 64);
  }
  const nlohmann::json& bucket = communication.at("buckets").at(0);
  EXPECT_GT(bucket.at("ready_s").get<double>(), 0);
  EXPECT_LE(bucket.at("ready_s").get<double>(), bucket.at("start_s").get<double>());
  EXPECT_LE(bucket.at("start_s").get<double>(), bucket.at("end_s").get<double>());
}

TEST(Exchange, TheSlowRankIsNamed) {
  for (const char* groups : {"--no-sync-bn", "--sync-bn"}) {
    const TempDir dir;
    const ProgramResult result =
        run_ranks(2,
                  convnet(dir / "run", {"--threads", "1", groups}),
                  {.environment = {{"LOCKSTEP_FAULT", "slow:rank=1,ms=100"}}});
    ASSERT_EQ(result.exit_code, 0) << said(result);
    EXPECT_EQ(count_of(result.out, "\tslowest rank 1 (+"), 3) << groups << "\n" << result.out;
    const std::vector<nlohmann::json> lines = training_lines(dir / "run");
    EXPECT_EQ(lines.back().at("slowest_rank"), 1);
    EXPECT_GT(lines.back().at("skew").get<double>(), 0.5);
    const nlohmann::json ranks =
        read_json(dir / "run" / "run.json").at("communication").at("ranks");
    EXPECT_GT(ranks[0].at("exposed_s").get<double>(), 0.08) << "rank 0 waits for rank 1";
    EXPECT_GT(ranks[1].at("own_s").get<double>(), 0.1);
  }
}

TEST(Exchange, TheAuditNamesRankTensorAndElement) {
  const TempDir dir;
  const ProgramResult result =
      run_ranks(3,
                convnet(dir / "run", {"--check-ranks", "4"}),
                {.environment = {{"LOCKSTEP_FAULT", "flipbit:rank=1,step=9"}}});
  EXPECT_EQ(result.exit_code, 6) << said(result);
  EXPECT_EQ(count_of(result.err,
                     "ranks hold different weights after step 12: rank 1 differs in "
                     "layer1.0.weight at element 0"),
            1)
      << result.err;
}

// The difference is found at the end of the epoch, which is also the end of the run.
TEST(Exchange, NoAuditWithinAnEpochOnRequest) {
  const TempDir dir;
  const ProgramResult result =
      run_ranks(2,
                convnet(dir / "run", {"--check-ranks", "0"}),
                {.environment = {{"LOCKSTEP_FAULT", "flipbit:rank=1,step=19"}}});
  EXPECT_EQ(result.exit_code, 6) << said(result);
  EXPECT_EQ(count_of(result.err, "different weights after step 20"), 1) << result.err;
}

TEST(Exchange, AlgorithmsOutsideTheContractSaySo) {
  for (const char* algorithm : {"ring", "mpi", "none"}) {
    const TempDir dir;
    const ProgramResult result = run_ranks(2, convnet(dir / "run", {"--algorithm", algorithm}));
    EXPECT_EQ(result.exit_code, 0) << said(result);
    const std::string start = std::string("same bits: off, --algorithm ") + algorithm;
    EXPECT_EQ(count_of(result.out, start), 1) << result.out;
    const nlohmann::json run = read_json(dir / "run" / "run.json").at("run");
    EXPECT_EQ(run.at("same_bits_on"), nlohmann::json::array());
    EXPECT_EQ(run.at("algorithm"), algorithm);
  }
}

// Rank 1's weights are damaged after the last step. That must not change the result.
TEST(Exchange, WithoutAnExchangeRankZeroIsEvaluated) {
  const TempDir dir;
  const auto final_of = [&](const char* name, const char* fault) {
    const ProgramResult result = run_ranks(2,
                                           convnet(dir / name, {"--algorithm", "none"}),
                                           {.environment = {{"LOCKSTEP_FAULT", fault}}});
    EXPECT_EQ(result.exit_code, 0) << said(result);
    const nlohmann::json final = read_json(dir / name / "run.json").at("final");
    return std::pair(final.at("correct"), final.at("loss"));
  };
  EXPECT_EQ(final_of("damaged", "nan:rank=1,step=20"), final_of("whole", ""));
}

TEST(Exchange, HalfPrecisionOnTheWireStillTrains) {
  const TempDir dir;
  const ProgramResult result = run_ranks(
      2, convnet(dir / "run", {"--fp16-allreduce", "--gradient-predivide-factor", "0.5"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const nlohmann::json record = read_json(dir / "run" / "run.json");
  EXPECT_EQ(record.at("run").at("wire"), "f16");
  EXPECT_GT(record.at("final").at("acc1").get<double>(), 15);  // better than chance
}

}  // namespace
}  // namespace lockstep::testing::exchange_test
