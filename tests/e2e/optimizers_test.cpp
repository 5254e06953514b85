// Optimizers and learning-rate schedules in whole runs.
#include "core/safetensors.h"
#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"

namespace lockstep::testing::optimizers_test {
namespace {

// Three epochs of three steps. Evaluations have eight batches, so that each rank has some.
Arguments short_run(const TempDir& dir, const std::string& name, const Arguments& more) {
  Arguments line = {"train_convnet",
                    "--data",
                    (dir / "mnist").string(),
                    "--dataset",
                    "mnist",
                    "--epochs",
                    "3",
                    "--global-batch-size",
                    "32",
                    "--shards",
                    "4",
                    "--bn-groups",
                    "2",
                    "--print-freq",
                    "1",
                    "--val-batch-size",
                    "5",
                    "-o",
                    (dir / name).string()};
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

std::vector<double> learning_rates(const std::filesystem::path& run) {
  std::vector<double> rates;
  for (const nlohmann::json& line : read_metrics(run)) {
    if (line.contains("lr")) rates.push_back(line.at("lr").get<double>());
  }
  return rates;
}

class OptimizerRuns : public ::testing::Test {
 protected:
  void SetUp() override { write_small_mnist(dir_ / "mnist", 90, 40); }

  // Runs with these flags and returns the learning rate of each step.
  std::vector<double> run(const Arguments& more) {
    const ProgramResult result = run_program(short_run(dir_, "run", more));
    EXPECT_EQ(result.exit_code, 0) << said(result);
    return learning_rates(dir_ / "run");
  }

  const TempDir dir_;
};

TEST_F(OptimizerRuns, AStoppedRunsAverageIsOfItsLastStep) {
  const ProgramResult result =
      run_program(short_run(dir_, "run", {"--ema", "0.9", "--time-limit", "1"}),
                  {.environment = {{"LOCKSTEP_FAULT", "slow:rank=0,ms=400"}}});
  ASSERT_EQ(result.exit_code, 43) << said(result);
  const auto steps_of = [&](const char* file) {
    return read_safetensors(dir_ / "run" / "checkpoints" / file).metadata.at("steps");
  };
  EXPECT_EQ(steps_of("ema.safetensors"), steps_of("last.safetensors"));
}

class SameBitsOptimizers : public OptimizerRuns, public ::testing::WithParamInterface<Arguments> {};

TEST_P(SameBitsOptimizers, OnOneAndTwoRanks) {
  for (const int ranks : {1, 2}) {
    const ProgramResult result =
        run_ranks(ranks, short_run(dir_, std::to_string(ranks), GetParam()));
    ASSERT_EQ(result.exit_code, 0) << said(result);
  }
  EXPECT_EQ(read_json(dir_ / "1" / "run.json").at("digest"),
            read_json(dir_ / "2" / "run.json").at("digest"));
  EXPECT_EQ(learning_rates(dir_ / "1"), learning_rates(dir_ / "2"));
}
// Stopped in the middle of the second epoch.
TEST_P(SameBitsOptimizers, ResumedOnTwoRanks) {
  const ProgramResult whole = run_program(short_run(dir_, "whole", GetParam()));
  ASSERT_EQ(whole.exit_code, 0) << said(whole);
  Arguments first = short_run(dir_, "parts", GetParam());
  first.insert(first.end(), {"--max-steps", "5"});
  const ProgramResult begun = run_program(first);
  ASSERT_EQ(begun.exit_code, 0) << said(begun);
  Arguments second = short_run(dir_, "parts", GetParam());
  second.insert(second.end(), {"--resume", "auto"});
  const ProgramResult resumed = run_ranks(2, second);
  ASSERT_EQ(resumed.exit_code, 0) << said(resumed);
  EXPECT_EQ(read_json(dir_ / "whole" / "run.json").at("digest"),
            read_json(dir_ / "parts" / "run.json").at("digest"));
  EXPECT_EQ(learning_rates(dir_ / "whole").back(), learning_rates(dir_ / "parts").back());
}
INSTANTIATE_TEST_SUITE_P(
    Optimizers,
    SameBitsOptimizers,
    ::testing::Values(
        Arguments{"--opt", "adamw", "--wd", "0.1", "--no-bias-decay"},
        Arguments{"--opt", "adam", "--lookahead", "--lookahead-k", "3"},
        Arguments{"--nesterov", "--lookahead", "--lookahead-variant", "paper"},
        Arguments{"--lookahead",
                  "--lookahead-variant",
                  "airbench",
                  "--lookahead-k",
                  "2",
                  "--lookahead-alpha",
                  "0.25",
                  "--ema",
                  "0.9"},
        Arguments{"--opt",
                  "muon",
                  "--nesterov",
                  "--wd",
                  "0.01",
                  "--clip-grad-norm",
                  "1",
                  "--param-groups",
                  "fc.weight opt=sgd lr=2"},
        Arguments{"--opt",
                  "lamb",
                  "--wd",
                  "0.02",
                  "--no-bias-decay",
                  "--loss-scale",
                  "dynamic",
                  "--param-groups",
                  "fc.* lr=0.5"},
        Arguments{"--clip-grad-norm", "0.5"},
        Arguments{"--lr-scheduler",
                  "plateau",
                  "--plateau-patience",
                  "0",
                  "--plateau-threshold",
                  "1",
                  "--loss-scale",
                  "dynamic"},
        Arguments{"--param-groups",
                  "*.bias lr=8 wd=0.5; layer1.* lr=0.5 epochs=2",
                  "--wd",
                  "0.01",
                  "--clip-grad-norm",
                  "1"},
        Arguments{"--larc", "--wd", "0.01", "--lr-scheduler", "onecycle", "--ema", "0.9"},
        Arguments{"--loss",
                  "bce",
                  "--label-smoothing",
                  "0.1",
                  "--mixup",
                  "0.4",
                  "--bce-target-thresh",
                  "0.2",
                  "--opt",
                  "lamb",
                  "--wd",
                  "0.02"},
        Arguments{"--larc", "--no-larc-clip", "--clip-grad-norm", "1", "--mixup", "0.4"},
        Arguments{"--mixup", "1", "--ema", "0.5", "--lookahead", "--lr-scheduler", "poly"},
        Arguments{
            "--lr-scheduler", "triangular", "--lr-per-1024", "--lr", "0.5", "--epochs", "2.4"},
        Arguments{"--clip-grad-norm", "0.5", "--loss-scale", "dynamic", "--opt", "adamw"},
        Arguments{
            "--lr-scheduler", "plateau", "--plateau-patience", "0", "--plateau-threshold", "1"}));

TEST_F(OptimizerRuns, MuonInBf16HasTheSameBitsOnOneToEightRanks) {
  const auto begin = [&](int ranks, const std::string& name, const Arguments& more) {
    Arguments line = short_run(dir_, name, {"--opt", "muon", "--shards", "8", "--bn-groups", "8"});
    line.insert(line.end(), more.begin(), more.end());
    const ProgramResult result = run_ranks(ranks, line);
    EXPECT_EQ(result.exit_code, 0) << said(result);
    return said(result);
  };
  const auto record = [&](const std::string& name) { return read_json(dir_ / name / "run.json"); };
  begin(1, "f32", {});
  for (const int ranks : {1, 2, 4, 8}) {
    begin(ranks, std::to_string(ranks), {"--muon-dtype", "bf16"});
    EXPECT_EQ(record(std::to_string(ranks)).at("digest"), record("1").at("digest")) << ranks;
  }
  EXPECT_EQ(record("8").at("flags").at("muon-dtype").at("value"), "bf16");
  EXPECT_NE(record("8").at("digest"), record("f32").at("digest"));

  begin(4, "parts", {"--muon-dtype", "bf16", "--max-steps", "5"});
  begin(8, "parts", {"--muon-dtype", "bf16", "--resume", "auto"});
  EXPECT_EQ(record("parts").at("digest"), record("1").at("digest"));
  begin(4, "changed", {"--muon-dtype", "bf16", "--max-steps", "5"});
  EXPECT_EQ(count_of(begin(2, "changed", {"--resume", "auto"}), "muon-dtype is f32, was bf16"), 1);
}

TEST_F(OptimizerRuns, TheRateOfEachStepIsInTheMetrics) {
  const std::vector<double> rates = run({"--lr", "0.9", "--lr-scheduler", "linear", "--scale-lr"});
  ASSERT_EQ(rates.size(), 9U);
  for (size_t i = 0; i < rates.size(); ++i) {
    EXPECT_NEAR(rates[i], 0.1125 * (1 - static_cast<double>(i) / 9), 1e-9) << i;
  }
}

TEST_F(OptimizerRuns, APartOfAnEpochEndsTheRunAndMayBeMadeWhole) {
  EXPECT_EQ(run({"--epochs", "2.4"}).size(), 8U);
  EXPECT_EQ(read_json(dir_ / "run" / "run.json").at("final").at("total"), 40);
  const ProgramResult whole = run_program(short_run(dir_, "whole", {}));
  ASSERT_EQ(whole.exit_code, 0) << said(whole);
  EXPECT_EQ(run({"--resume", "auto"}).size(), 9U);
  EXPECT_EQ(read_json(dir_ / "run" / "run.json").at("digest"),
            read_json(dir_ / "whole" / "run.json").at("digest"));
}

// The flags demand a loss below 0, which is impossible, so no epoch is an improvement.
TEST_F(OptimizerRuns, APlateauCutsAfterEachEpoch) {
  const std::vector<double> rates = run({"--lr",
                                         "0.01",
                                         "--lr-scheduler",
                                         "plateau",
                                         "--plateau-patience",
                                         "0",
                                         "--plateau-threshold",
                                         "1"});
  ASSERT_EQ(rates.size(), 9U);
  for (size_t i = 0; i < rates.size(); ++i) {
    EXPECT_NEAR(rates[i], i < 3 ? 0.01 : (i < 6 ? 0.001 : 0.0001), 1e-12) << i;
  }
}

// On two ranks with different batch-norm statistics. ema.safetensors holds the weights that were
// evaluated last.
TEST_F(OptimizerRuns, TheAverageIsEvaluatedAndSaved) {
  const ProgramResult result = run_ranks(2, short_run(dir_, "run", {"--ema", "0.9"}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const auto averages_of = [&](const char* name) {
    std::vector<nlohmann::json> found;
    for (const nlohmann::json& line : read_metrics(dir_ / name)) {
      if (line.at("split") == "val-ema") found.push_back(line);
    }
    return found;
  };
  const std::vector<nlohmann::json> averages = averages_of("run");
  ASSERT_EQ(averages.size(), 3U);
  EXPECT_EQ(count_of(result.out, " * of --ema: Acc@1 "), 3) << result.out;
  const std::string saved = (dir_ / "run" / "checkpoints" / "ema.safetensors").string();
  EXPECT_EQ(run_program({"lockstep", "diff", saved, weights(dir_ / "run")}).exit_code, 1);
  const ProgramResult evaluated =
      run_program(short_run(dir_, "evaluated", {"--evaluate", "--pretrained", saved}));
  ASSERT_EQ(evaluated.exit_code, 0) << said(evaluated);
  EXPECT_EQ(read_json(dir_ / "evaluated" / "run.json").at("final").at("loss"),
            averages.back().at("loss"));
  const ProgramResult one = run_program(short_run(dir_, "one", {"--ema", "0.9"}));
  ASSERT_EQ(one.exit_code, 0) << said(one);
  EXPECT_EQ(averages_of("one").back().at("loss"), averages.back().at("loss"));
}

// Products read 16-bit copies of the weights, which an evaluation of the average replaces.
TEST_F(OptimizerRuns, EvaluatingTheAverageIn16BitsChangesNoTraining) {
  const Arguments mixed = {"--opt-level", "O2", "--dtype", "bf16"};
  const auto train = [&](const char* name, Arguments more) {
    more.insert(more.end(), mixed.begin(), mixed.end());
    const ProgramResult result = run_program(short_run(dir_, name, more));
    EXPECT_EQ(result.exit_code, 0) << said(result);
    return read_json(dir_ / name / "run.json");
  };
  EXPECT_EQ(train("averaged", {"--ema", "0.9"}).at("digest"), train("plain", {}).at("digest"));
  const std::string saved = (dir_ / "averaged" / "checkpoints" / "ema.safetensors").string();
  const nlohmann::json evaluated = train("evaluated", {"--evaluate", "--pretrained", saved});
  EXPECT_EQ(evaluated.at("final").at("loss"), read_metrics(dir_ / "averaged").back().at("loss"));
}

TEST_F(OptimizerRuns, AScaledRunsRatesAreThoseOfItsEpochs) {
  const Arguments later = {"--start-epoch", "1", "--lr-scheduler", "cosine"};
  const std::vector<double> plain = run(later);
  Arguments scaled = later;
  scaled.insert(scaled.end(), {"--loss-scale", "1", "--overwrite"});
  EXPECT_EQ(run(scaled), plain);
}

TEST_F(OptimizerRuns, AFirstStepAtRateZeroMovesNoWeight) {
  run({"--warmup-epochs", "1", "--warmup-decay", "0", "--max-steps", "1"});
  const std::string first = weights(dir_ / "run");
  const ProgramResult none =
      run_program(short_run(dir_, "none", {"--lr", "0", "--max-steps", "1"}));
  ASSERT_EQ(none.exit_code, 0) << said(none);
  EXPECT_EQ(run_program({"lockstep", "diff", first, weights(dir_ / "none")}).exit_code, 0);
}

TEST_F(OptimizerRuns, LrDryRunPrintsOnceAndLeavesNothing) {
  const ProgramResult result = run_ranks(
      2,
      short_run(dir_,
                "run",
                {"--lr", "0.4", "--lr-scheduler", "step", "--lr-step-size", "2", "--lr-dry-run"}));
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(count_of(result.out, "epoch "), 9) << result.out;
  EXPECT_EQ(count_of(result.out, "epoch 2 step 7 lr 0.04\n"), 1) << result.out;
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
}

TEST(OptimizerFlags, ContradictionsEndInThreeLinesAndExit2) {
  const auto refused = [](const Arguments& flags, const std::string& error) {
    Arguments line = {"train_convnet"};
    line.insert(line.end(), flags.begin(), flags.end());
    const ProgramResult result = run_ranks(2, line);
    EXPECT_EQ(result.exit_code, 2) << said(result);
    EXPECT_EQ(count_of(result.err, "lockstep: error: " + error + "\n"), 1) << result.err;
    EXPECT_EQ(count_of(result.err, "  why: "), 1) << result.err;
    EXPECT_EQ(count_of(result.err, "  try: "), 1) << result.err;
  };
  refused({"--opt", "adam", "--nesterov"}, "--nesterov would change nothing");
  refused({"--muon-dtype", "bf16"}, "--muon-dtype would change nothing");
  refused({"--opt", "muon", "--muon-dtype", "f16"}, "bad value: --muon-dtype f16");
}

}  // namespace
}  // namespace lockstep::testing::optimizers_test
