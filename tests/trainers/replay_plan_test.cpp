#include "trainers/debug/replay_plan.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/temp_dir.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/config/run_files.h"
#include "trainers/report/run_directory.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers::replay_plan_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::write_text;

// A run of two ranks that got into trouble at step 7.
class ReplayPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    record_.argv = {"/opt/lockstep/train_resnet", "data"};
    record_.flags = {{"data", "data", "command line"},
                     {"arch", "resnet20", "environment"},
                     {"lr", "0.1", "default"},
                     {"batch-size", "4", "command line"},
                     {"sync-bn", "true", "preset"},
                     {"overwrite", "true", "command line"},
                     {"threads", "3", "command line"},
                     {"seed", "9", "command line"}};
    record_.ranks.resize(2);
    record_.plan.global_batch = 8;
    record_.plan.micro_steps = 2;
    record_.plan.shards = 4;
    record_.plan.bn_groups = 1;
    record_.plan.same_bits = {1, 2, 4};
    record_.data_digest = "0123";
    std::filesystem::create_directories(dir_ / "checkpoints");
    write_text(dir_ / kNumericsFile, to_json({.what = "the loss is nan", .step = 7}));
  }
  ReplayPlan plan() {
    write_text(dir_ / "run.json", to_json(record_));
    return read_replay_plan(dir_.path());
  }
  std::string checkpoint(int64_t step) {
    return testing::write_tiny(dir_ / "checkpoints", run_, step).string();
  }

  const TempDir dir_;
  RunRecord record_;
  testing::TinyRun run_{1};
};

TEST_F(ReplayPlanTest, TakesTheRunsFlagsAndItsCutOfTheBatch) {
  const ReplayPlan replay = plan();
  EXPECT_EQ(replay.program, Program::kTrainResnet);
  EXPECT_EQ(replay.target.step, 7);
  EXPECT_EQ(replay.target.ranks, 2);
  EXPECT_EQ(replay.trouble, "the loss is nan");
  EXPECT_THAT(replay.arguments,
              ElementsAre("--quiet",
                          "--arch=resnet20",
                          "--data=data",
                          "--seed=9",
                          "--global-batch-size=8",
                          "--batches-per-allreduce=2",
                          "--shards=4",
                          "--bn-groups=1"));
}

// A replay uses the engines that the run timed and does not time again.
TEST_F(ReplayPlanTest, GoesByTheEnginesThatTheRunHad) {
  record_.flags.push_back({"autotune", "true", "command line"});
  record_.flags.push_back({"plan-file", "h200.json", "command line"});
  record_.plan.plan_choices = "5b7e";
  EXPECT_EQ(plan().arguments.back(), "--plan-file=" + (dir_ / kPlansFile).string());
  record_.plan.plan_choices.clear();
  EXPECT_EQ(plan().arguments.back(), "--bn-groups=1");
}

TEST_F(ReplayPlanTest, StartsFromTheNewestSoundCheckpointBeforeTheTrouble) {
  EXPECT_EQ(plan().start, "");
  const std::string third = checkpoint(3);
  EXPECT_EQ(plan().start, third);
  const std::string fifth = checkpoint(5);
  checkpoint(7);
  EXPECT_EQ(plan().start, fifth);
  EXPECT_EQ(plan().arguments.back(), "--resume=" + fifth);
  Tensor weight = run_.model.parameters()[0].value();
  weight.data<float>()[0] = std::numeric_limits<float>::infinity();
  checkpoint(6);
  EXPECT_EQ(plan().start, fifth) << "what it holds is spoiled already";
  write_text(fifth, "cut off");
  EXPECT_EQ(plan().start, third);
}

TEST_F(ReplayPlanTest, StartsWhereTheRunWentOnFrom) {
  const std::string file = checkpoint(5);
  std::filesystem::rename(dir_ / "checkpoints", dir_ / "first");
  const std::string moved = (dir_ / "first" / std::filesystem::path(file).filename()).string();
  record_.resumed = {moved, 5};
  EXPECT_EQ(plan().start, moved);
  record_.resumed = {moved, 7};
  EXPECT_EQ(plan().start, "");
  record_.resumed = {file, 5};
  EXPECT_EQ(plan().start, "") << "it is gone";
}

TEST_F(ReplayPlanTest, WantsRanksThatHaveTheRunsBits) {
  const auto works = [&](int64_t ranks) {
    try {
      plan().check(ranks, "0123");
    } catch (const UsageError& error) {
      EXPECT_THAT(error.hint(), HasSubstr("mpirun -np"));
      return false;
    }
    return true;
  };
  EXPECT_TRUE(works(1) && works(2) && works(4));
  EXPECT_FALSE(works(3));
  record_.ranks.resize(3);  // not a number of ranks with the same bits
  EXPECT_FALSE(works(1));
  EXPECT_TRUE(works(3));
}

TEST_F(ReplayPlanTest, WantsTheRunsData) {
  EXPECT_THROW(plan().check(2, "4567"), DataError);
}

TEST_F(ReplayPlanTest, RefusesWhatIsNoRunInTrouble) {
  EXPECT_THROW(read_replay_plan(dir_ / "nowhere"), UsageError);
  record_.argv = {"python", "main.py"};
  EXPECT_THROW(plan(), CheckpointError);
  record_.argv = {};
  EXPECT_THROW(plan(), CheckpointError);
  write_text(dir_ / "run.json", "{\"argv\": ");
  EXPECT_THROW(read_replay_plan(dir_.path()), CheckpointError);
  std::filesystem::remove(dir_ / kNumericsFile);
  EXPECT_THROW(plan(), UsageError);
}

}  // namespace
}  // namespace lockstep::trainers::replay_plan_test
