// Infinities and NaNs in whole runs: what is skipped, what is named, and the replay that names the
// cause.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"

namespace lockstep::testing::numerics_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// Epochs of ten steps with 32 images in four shards.
class Numerics : public ::testing::Test {
 protected:
  void SetUp() override { write_small_mnist(dir_ / "mnist", 320, 40); }

  ProgramResult train(int ranks,
                      const std::string& name,
                      const Arguments& more,
                      const std::string& fault = "") const {
    Arguments line = {"train_convnet", (dir_ / "mnist").string(), "--dataset", "mnist"};
    line.insert(line.end(), {"--epochs", "2", "--global-batch-size", "32", "--shards", "4"});
    line.insert(line.end(), {"--bn-groups", "2", "-o", path(name)});
    line.insert(line.end(), more.begin(), more.end());
    return run_ranks(ranks, line, {.environment = {{"LOCKSTEP_FAULT", fault}}});
  }
  ProgramResult replay(int ranks, const std::string& name, const std::string& fault = "") const {
    const ProgramOptions options{.environment = {{"LOCKSTEP_FAULT", fault}}};
    if (ranks == 1) return run_program({"lockstep", "replay", path(name)}, options);
    return run_ranks(ranks, {"lockstep", "replay", path(name)}, options);
  }
  std::string path(const std::string& name) const { return (dir_ / name).string(); }
  nlohmann::json found(const std::string& name) const {
    return read_json(dir_ / name / "numerics.json").at("first");
  }

  const TempDir dir_;
};

// 1e5 is infinite in f16 only. One skipped step gives one line; ten in a row give a report that
// names a real step. A replay in one process must give the same report.
TEST_F(Numerics, TenSkippedStepsNameLayerRankAndStep) {
  const Arguments o2 = {"--opt-level", "O2"};
  const std::string one = "inf:rank=1,step=3,layer=layer2.0,value=1e5";
  const ProgramResult once = train(2, "once", o2, one);
  ASSERT_EQ(once.exit_code, 0) << said(once);
  EXPECT_EQ(count_of(once.out, "Gradient overflow.  Skipping step, "), 1) << said(once);
  EXPECT_THAT(once.err, Not(HasSubstr("numerics")));
  EXPECT_FALSE(fs::exists(dir_ / "once" / "numerics.json"));

  const std::string many = "inf:rank=1,step=3,count=11,layer=layer2.0,value=1e5";
  const ProgramResult result = train(2, "many", o2, many);
  ASSERT_EQ(result.exit_code, 0) << "training goes on\n" << said(result);
  EXPECT_EQ(count_of(result.err, "lockstep: numerics: "), 1) << said(result);
  EXPECT_THAT(result.err, HasSubstr("10 steps in a row were skipped at step 12\n"));
  EXPECT_THAT(result.err,
              HasSubstr("  first: layer2.0 (conv2d), backward: the gradient of its input: 3136 "
                        "elements of f16 (16,16,14,14) infinite or NaN\n"));
  EXPECT_THAT(result.err, HasSubstr("  where: step 12, rank 1, shard 2 of 4, image "));
  EXPECT_THAT(result.err, HasSubstr("(skipped), 64 after step 12 (skipped)\n"));
  const nlohmann::json first = found("many");
  EXPECT_EQ(first.at("images").size(), 1U);

  const ProgramResult again = replay(1, "many", many);
  ASSERT_EQ(again.exit_code, 0) << said(again);
  EXPECT_THAT(again.out, HasSubstr("step0000010.safetensors to step 12 (10 steps in a row were "))
      << "not from the end";
  EXPECT_THAT(again.err, HasSubstr("step 12, rank 1, shard 2 of 4, image "));
  EXPECT_EQ(found("many").at("images"), first.at("images"));
  EXPECT_EQ(found("many").at("event"), first.at("event"));
}

// The weights in the checkpoint of step 4 already contain NaNs, so the replay begins at the
// checkpoint before.
TEST_F(Numerics, AReplayNamesWhereANanLossBegan) {
  const std::string fault = "inf:rank=1,step=4,layer=layer1.0";
  const ProgramResult result = train(2, "nan", {"--save-steps", "2"}, fault);
  EXPECT_EQ(result.exit_code, 6) << said(result);
  EXPECT_THAT(result.err, HasSubstr("the loss is nan at step 5 (epoch 1)\n"));
  EXPECT_THAT(result.err, HasSubstr(fmt::format("`lockstep replay {}` names", path("nan"))));
  EXPECT_TRUE(found("nan").is_null());
  const std::string metrics = read_text(dir_ / "nan" / "metrics.jsonl");
  const std::string record = read_text(dir_ / "nan" / "run.json");
  EXPECT_EQ(nlohmann::json::parse(record).at("exit_code"), 6);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "nan" / "report.html"));

  for (const int ranks : {1, 2, 4}) {
    const ProgramResult again = replay(ranks, "nan", fault);
    ASSERT_EQ(again.exit_code, 0) << said(again);
    EXPECT_THAT(again.out, HasSubstr("step0000002.safetensors to step 5 (the loss is nan) on "));
    EXPECT_THAT(again.err,
                HasSubstr("  first: layer1.0 (conv2d), backward: the gradient of layer1.0.weight: "
                          "400 elements of f32 "));
    EXPECT_THAT(again.err, HasSubstr("  where: step 4, rank 1, shard 2 of 4, images "));
    EXPECT_EQ(found("nan").at("images").size(), 8U);
  }
  EXPECT_EQ(read_text(dir_ / "nan" / "metrics.jsonl"), metrics);
  EXPECT_EQ(read_text(dir_ / "nan" / "run.json"), record);

  const ProgramResult passed = replay(1, "nan");  // without the fault
  EXPECT_EQ(passed.exit_code, 5) << said(passed);
  EXPECT_THAT(passed.err, HasSubstr("nan was replayed to step 5 without trouble\n"));

  fs::rename(dir_ / "mnist", dir_ / "elsewhere");
  const ProgramResult missing = replay(1, "nan");
  EXPECT_EQ(missing.exit_code, 3) << said(missing);
}

// The last update writes NaNs after a finite loss.
TEST_F(Numerics, WeightsWithANanLossAreNeverTheBest) {
  const ProgramResult result = train(1, "last", {"--max-steps", "3"}, "nan:rank=0,step=3");
  EXPECT_EQ(count_of(result.err, "warning: the test loss is nan after epoch 1"), 1) << said(result);
  EXPECT_FALSE(fs::exists(dir_ / "last" / "checkpoints" / "best.safetensors"));
}

TEST_F(Numerics, AReplayOpensBuiltInImages) {
  const ProgramResult result =
      run_program({"train_convnet", "--lr", "1000", "--max-steps", "60", "-o", path("digits")});
  ASSERT_EQ(result.exit_code, 6) << said(result);
  const ProgramResult again = replay(1, "digits");
  EXPECT_THAT(again.out, HasSubstr("the loss is ")) << said(again);
  EXPECT_THAT(again.err, Not(HasSubstr("bug"))) << said(again);
}

// The layer names of a residual network. 1e30 is infinite in f16 only.
TEST_F(Numerics, NamesALayerOfAResNet) {
  const std::string fault = "inf:rank=1,step=1,count=10,layer=layer2.1.conv1,value=1e30";
  Arguments line = {"train_resnet", "-a", "resnet20", "-b", "4", "--opt-level", "O2"};
  line.insert(line.end(), {"--max-steps", "10", "-o", path("resnet")});
  const ProgramResult result = run_ranks(2, line, {.environment = {{"LOCKSTEP_FAULT", fault}}});
  ASSERT_EQ(result.exit_code, 6) << "no step was applied\n" << said(result);
  EXPECT_THAT(result.err,
              HasSubstr("  first: layer2.1.conv1 (conv2d), backward: the gradient of its input: "));
  EXPECT_EQ(found("resnet").at("ranks"), nlohmann::json({1}));
}

// The only fault is a learning rate. The bits of three ranks are reproduced only by three ranks.
TEST_F(Numerics, ADivergedRunOfThreeRanksIsReplayedOnThree) {
  const ProgramResult result =
      train(3, "diverged", {"--lr", "1000", "--momentum", "0", "--loss-scale", "dynamic"});
  ASSERT_EQ(result.exit_code, 6) << said(result);
  const ProgramResult one = replay(1, "diverged");
  EXPECT_EQ(one.exit_code, 2) << said(one);
  EXPECT_THAT(one.err, HasSubstr("mpirun -np 3 lockstep replay "));
  const ProgramResult three = replay(3, "diverged");
  EXPECT_EQ(three.exit_code, 0) << said(three);
  EXPECT_EQ(count_of(three.err, "  first: "), 1) << said(three);
  EXPECT_FALSE(found("diverged").is_null());
}

TEST_F(Numerics, AReplayNeedsARunInTrouble) {
  ASSERT_EQ(train(1, "sound", {"--max-steps", "2"}).exit_code, 0);
  const ProgramResult sound = replay(1, "sound");
  EXPECT_EQ(sound.exit_code, 2) << said(sound);
  EXPECT_THAT(sound.err, HasSubstr("sound has nothing to replay\n  why: no loss of it was"));
  const ProgramResult missing = replay(1, "nowhere");
  EXPECT_EQ(missing.exit_code, 2) << said(missing);
  EXPECT_THAT(missing.err, HasSubstr("there is no run in "));
  fs::create_directories(dir_ / "foreign");
  write_text(dir_ / "foreign" / "run.json", R"({"name": "somebody's"})");
  write_text(dir_ / "foreign" / "numerics.json", R"({"step": 3})");
  const ProgramResult foreign = replay(1, "foreign");
  EXPECT_EQ(foreign.exit_code, 4) << said(foreign);
  EXPECT_THAT(foreign.err, HasSubstr("foreign cannot be replayed\n"));
  EXPECT_EQ(count_of(foreign.err, "\n  try: "), 1) << foreign.err;
}

}  // namespace
}  // namespace lockstep::testing::numerics_test
