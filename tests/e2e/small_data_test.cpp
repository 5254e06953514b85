// Data sets smaller than a batch, missing splits, and runs without an evaluation.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"

namespace lockstep::testing::small_data_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SmallData : public ::testing::Test {
 protected:
  SmallData() { write_small_mnist(dir_ / "data", 100, 50); }

  Arguments line(const std::string& run, const Arguments& more) const {
    Arguments line = {"train_convnet", (dir_ / "data").string(), "-o", (dir_ / run).string()};
    line.insert(line.end(), more.begin(), more.end());
    return line;
  }

  const TempDir dir_;
};

// Like torch's DataLoader, which also returns the one short batch.
TEST_F(SmallData, TrainsOnShortStepsWithTheSameBitsOnAllRanks) {
  const Arguments run = {"--global-batch-size", "256", "--shards", "8", "--bn-groups", "2"};
  const ProgramResult one = run_program(line("one", run));
  ASSERT_EQ(one.exit_code, 0) << said(one);
  EXPECT_THAT(one.out, HasSubstr(" 3 steps "));
  for (const int ranks : {2, 8}) {
    const std::string name = std::to_string(ranks);
    const ProgramResult several = run_ranks(ranks, line(name, run));
    ASSERT_EQ(several.exit_code, 0) << said(several);
    expect_same_bits(dir_ / "one", dir_ / name);
  }
}

TEST_F(SmallData, DropLastLeavesOutShortSteps) {
  const ProgramResult run = run_program(line("run", {"-b", "32", "--drop-last", "--epochs", "2"}));
  ASSERT_EQ(run.exit_code, 0) << said(run);
  EXPECT_THAT(run.out, HasSubstr(" 6 steps "));
  const std::string last = weights(dir_ / "run");
  // A resumed run keeps --drop-last, and so does one that is resumed from it.
  std::string from = last;
  for (const auto& [epochs, steps] : {std::pair("3", " 9 steps "), std::pair("4", " 12 steps ")}) {
    const fs::path more = dir_ / (std::string("more") + epochs);
    const std::string data = (dir_ / "data").string();
    const ProgramResult resumed = run_program(
        {"train_convnet", data, "--resume", from, "--epochs", epochs, "-o", more.string()});
    ASSERT_EQ(resumed.exit_code, 0) << said(resumed);
    EXPECT_THAT(resumed.out, HasSubstr(steps));
    EXPECT_THAT(resumed.err, Not(HasSubstr("drop-last")));
    from = weights(more);
  }
  const ProgramResult other = run_program(line("other", {"--resume", last, "--no-drop-last"}));
  EXPECT_EQ(other.exit_code, 4);
  EXPECT_THAT(other.err, HasSubstr("the checkpoint's run has --drop-last"));
  const ProgramResult none = run_program(line("none", {"-b", "256", "--drop-last"}));
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("--drop-last leaves no step of an epoch"));
}

TEST_F(SmallData, AnEvaluationNeedsNoTrainingImages) {
  const ProgramResult run = run_program(line("run", {}));
  ASSERT_EQ(run.exit_code, 0) << said(run);
  for (const char* file : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"}) {
    fs::remove(dir_ / "data" / file);
  }
  const ProgramResult evaluated =
      run_program(line("evaluated", {"-e", "--pretrained", weights(dir_ / "run")}));
  ASSERT_EQ(evaluated.exit_code, 0) << said(evaluated);
  EXPECT_THAT(evaluated.out, HasSubstr("data mnist (50 to evaluate)"));
  EXPECT_EQ(read_json(dir_ / "evaluated/run.json")["final"]["correct"],
            read_json(dir_ / "run/run.json")["final"]["correct"]);
  const ProgramResult trained = run_program(line("trained", {}));
  EXPECT_EQ(trained.exit_code, 3);
  EXPECT_THAT(trained.err, HasSubstr("missing: train-images-idx3-ubyte"));
}

// main.py: is_best = acc1 > best_acc1.
TEST_F(SmallData, TheFirstOfEqualAccuraciesIsTheBest) {
  write_small_mnist(dir_ / "data", 100, 2);
  const ProgramResult run = run_program(line("run", {"-b", "20", "--epochs", "6"}));
  ASSERT_EQ(run.exit_code, 0) << said(run);
  std::vector<int64_t> correct;
  for (const nlohmann::json& line : read_metrics(dir_ / "run")) {
    if (line["split"] == "val") correct.push_back(line["correct"]);
  }
  ASSERT_EQ(correct.size(), 6U);
  const auto best = std::ranges::max_element(correct);
  ASSERT_GT(std::ranges::count(correct, *best), 1);  // three possible values in six epochs
  EXPECT_THAT(run.out,
              HasSubstr(" after epoch " + std::to_string(best - correct.begin() + 1) + " "));
}

TEST_F(SmallData, NoEvalNeverEvaluates) {
  const ProgramResult run = run_program(line("run", {"--no-eval", "--epochs", "2"}));
  ASSERT_EQ(run.exit_code, 0) << said(run);
  EXPECT_THAT(run.out, AllOf(HasSubstr("not evaluated: --no-eval"), Not(HasSubstr("Accuracy"))));
  const nlohmann::json record = read_json(dir_ / "run/run.json");
  EXPECT_EQ(record["exit_code"], 0);
  EXPECT_FALSE(record["final"].contains("acc1"));
  EXPECT_GT(record["final"]["images_per_s"], 0);
  EXPECT_TRUE(fs::exists(weights(dir_ / "run")));
  EXPECT_FALSE(fs::exists(dir_ / "run/checkpoints/best.safetensors"));
  for (const nlohmann::json& line : read_metrics(dir_ / "run")) EXPECT_NE(line["split"], "val");
}

TEST_F(SmallData, NoEvalOfDummyImagesEndsAfterItsStep) {
  const ProgramResult run = run_program({"train_resnet",
                                         "--dummy",
                                         "-a",
                                         "resnet18",
                                         "-b",
                                         "2",
                                         "--max-steps",
                                         "1",
                                         "--no-eval",
                                         "-o",
                                         (dir_ / "run").string()});
  ASSERT_EQ(run.exit_code, 0) << said(run);
  EXPECT_THAT(run.out, HasSubstr("not evaluated: --no-eval · 1 step ·"));
}

TEST_F(SmallData, ARunWithoutAStepLeftHasNoSpeed) {
  ASSERT_EQ(run_program(line("run", {})).exit_code, 0);
  const ProgramResult again =
      run_program({"train_convnet", (dir_ / "data").string(), "--resume", (dir_ / "run").string()});
  ASSERT_EQ(again.exit_code, 0) << said(again);
  EXPECT_THAT(again.out, AllOf(HasSubstr("no step was left to take"), Not(HasSubstr("images/s"))));
  EXPECT_TRUE(read_json(dir_ / "run/run.json")["final"]["images_per_s"].is_null());
}

}  // namespace
}  // namespace lockstep::testing::small_data_test
