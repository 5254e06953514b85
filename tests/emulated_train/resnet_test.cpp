// train_resnet --device cuda: a narrow network on photos of 8 by 8 pixels.
#include "tests/emulated_train/programs.h"
#include "tests/support/image_files.h"

namespace lockstep::testing::resnet_test {
namespace {

class NarrowResNet : public ::testing::Test {
 protected:
  NarrowResNet() { write_image_folders(dir_ / "photos", 3); }

  void train(int ranks, const std::string& name, const Arguments& more) const {
    Arguments line = {"train_resnet_emulated", (dir_ / "photos").string(), "-a", "resnet20"};
    line.insert(line.end(), {"--device", "cuda", "--workers", "0", "--lr", "0.01"});
    for (const char* size : {"--train-crop-size", "--val-resize-size", "--val-crop-size"}) {
      line.insert(line.end(), {size, "8"});
    }
    line.insert(line.end(), {"--global-batch-size", "4", "--shards", "2", "--bn-groups", "2"});
    line.insert(line.end(), {"-o", (dir_ / name).string()});
    line.insert(line.end(), more.begin(), more.end());
    const ProgramOptions options = {.environment = {{"LOCKSTEP_EMULATION_DEVICES", "4"},
                                                    {"LOCKSTEP_EMULATION_STREAMS", "lazy"}}};
    const ProgramResult result = run_on(ranks, line, options);
    ASSERT_EQ(result.exit_code, 0) << said(result);
  }

  const TempDir dir_;
};

TEST_F(NarrowResNet, HasTheSameBitsOnOneTwoAndFourRanksAndEagerly) {
  for (const char* level : {"O0", "O2"}) {
    const int ranks = level == std::string("O0") ? 2 : 4;
    const std::string shards = std::to_string(ranks);
    const Arguments steps = {
        "--opt-level", level, "--max-steps", "2", "--shards", shards, "--bn-groups", shards};
    const std::string one = level + std::string("-1");
    train(1, one, steps);
    Arguments eager = steps;
    eager.push_back("--no-graph");
    train(ranks, level, eager);
    expect_same_bits(dir_ / one, dir_ / level);
  }
}

TEST_F(NarrowResNet, TrainsOnThreeRanksAndGoesOnFromACheckpointOnTwo) {
  train(3,
        "three",
        {"--shards", "3", "--bn-groups", "3", "--global-batch-size", "6", "--max-steps", "1"});
  train(1, "whole", {"--max-steps", "2"});
  train(1, "parts", {"--max-steps", "1"});
  train(2, "parts", {"--max-steps", "2", "--resume", "auto"});
  const ProgramResult difference =
      run_program({"lockstep", "diff", weights(dir_ / "whole"), weights(dir_ / "parts")});
  EXPECT_EQ(difference.exit_code, 0) << said(difference);
}

}  // namespace
}  // namespace lockstep::testing::resnet_test
