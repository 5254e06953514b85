// Files written by earlier versions must remain readable forever. Each format version adds a
// folder.
#include <filesystem>

#include <gtest/gtest.h>

#include "core/digest.h"
#include "nn/convnet.h"
#include "nn/optimizer.h"
#include "tests/support/golden.h"
#include "trainers/checkpoint/checkpoint_file.h"

namespace lockstep::trainers::checkpoint_golden_test {
namespace {

// Written by train_convnet --max-steps 1 --shards 2 --bn-groups 1 -b 64 --seed 3 on the built-in
// digits.
TEST(CheckpointOfFormat1, IsReadAndFitsItsNetworkAndOptimizer) {
  const std::filesystem::path folder = testing::golden_folder() / "checkpoint_v1";
  const Checkpoint checkpoint = read_checkpoint(folder / "step0000001.safetensors");

  Mt19937 rng(1);
  nn::ConvNet model(nn::Init{rng});
  const nn::Sgd optimizer(model.named_parameters(), {.lr = 0.1F, .momentum = 0.9F});
  EXPECT_EQ(mismatches(model.state(), checkpoint.model), std::vector<std::string>());
  EXPECT_EQ(mismatches(optimizer.state(), checkpoint.optimizer), std::vector<std::string>());
  copy_into(model.state(), checkpoint.model);
  copy_into(optimizer.state(), checkpoint.optimizer);
  EXPECT_EQ(to_hex(state_digest(model)), "978a8693f4bc8751");
  EXPECT_EQ(to_hex(digest_of_row_major(file_tensors(optimizer.state()))), "ea5dc67d49606d34");

  const RunIdentity& run = checkpoint.record.run;
  EXPECT_EQ(run.program, "train_convnet");
  EXPECT_EQ(run.arch, "convnet");
  EXPECT_EQ(run.global_batch, 64);
  EXPECT_EQ(run.micro_steps, 1);
  EXPECT_EQ(run.shards, 2);
  EXPECT_EQ(run.bn_groups, 1);
  EXPECT_EQ(run.seeds, (Seeds{.run = 3, .order = 3, .weights = 3}));
  EXPECT_EQ(run.start_epoch, 0);
  EXPECT_EQ(run.data_digest, "fc694f3b3e0f5e6e342945e6e6b7a605");
  EXPECT_EQ(run.environment.at("wire"), "f32");
  EXPECT_EQ(run.settings.at("momentum"), "0.9");
  EXPECT_FALSE(run.evaluation.is_known());
  const TrainingPosition& at = checkpoint.record.position;
  EXPECT_EQ(at.steps, 1);
  EXPECT_EQ(at.applied, 1);
  EXPECT_EQ(at.epoch, 0);
  EXPECT_EQ(at.sums.steps, 1);
  EXPECT_EQ(at.sums.images, 64);
  EXPECT_EQ(at.best.total, 10000);
  EXPECT_EQ(at.schedule, std::nullopt);
}

}  // namespace
}  // namespace lockstep::trainers::checkpoint_golden_test
