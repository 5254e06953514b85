// The fake device changes images to the CPU's bits.
#include <gtest/gtest.h>

#include "engine/step/training_batches.h"
#include "tests/emulated_train/tiny_training.h"
#include "tests/emulation/runtime/fake_runtime.h"
#include "tests/support/close.h"

namespace lockstep::testing::augmentation_test {
namespace {

using trainers::AugmentationConfig;

struct Seen {
  std::vector<Tensor> images, labels, mixes;
};

// By the training steps of two epochs.
Seen images_on(Device device, const AugmentationConfig& asked) {
  trainers::ResolvedRun run = tiny_run(device, 22);
  run.request.augmentation = asked;
  run.request.seeds.run = 5;
  comm::SingleCommunicator alone;
  Stream stream(device);
  Mt19937 rng(3);
  const std::unique_ptr<nn::Module> model = make_tiny_resnet(nn::Init{rng, device});
  const data::DatasetPair data = {.train = std::make_shared<TinyShapes>(42), .test = {}};
  TrainingBatches batches(trainers::step_inputs(run, data, alone, stream, *model),
                          {.per_epoch = 11, .first = 0, .end = 22},
                          nullptr);
  Seen seen;
  for (int step = 0; step < 22; ++step) {
    const TrainingBatches::MicroStep batch =
        batches.next({}, [](const Shards&) -> TapeListener* { return nullptr; });
    seen.images.push_back(to_cpu(batch.images.value()));
    seen.labels.push_back(to_cpu(batch.labels));
    if (batch.mix.defined()) seen.mixes.push_back(to_cpu(batch.mix));
  }
  return seen;
}

void expect_the_cpus_images(const AugmentationConfig& asked) {
  emulation::reset_runtime();
  emulation::set_stream_order(emulation::StreamOrder::kLazy);
  const Seen want = images_on(Device::kCpu, asked);
  const Seen got = images_on(Device::kCuda, asked);
  for (size_t step = 0; step < want.images.size(); ++step) {
    EXPECT_TRUE(same_bits(got.images[step], want.images[step])) << "step " << step;
    EXPECT_TRUE(same_bits(got.labels[step], want.labels[step])) << "step " << step;
  }
  ASSERT_EQ(got.mixes.size(), want.mixes.size());
  EXPECT_EQ(got.mixes.size(), asked.mixup > 0 || asked.cutmix > 0 ? 22U : 0U);
  for (size_t step = 0; step < want.mixes.size(); ++step) {
    EXPECT_TRUE(same_bits(got.mixes[step], want.mixes[step])) << "step " << step;
  }
}

TEST(EmulatedAugmentation, HasTheCpusBitsForEachFlip) {
  for (const Flip flip : {Flip::kNone, Flip::kRandom, Flip::kAlternating}) {
    expect_the_cpus_images({.flip = flip});
    expect_the_cpus_images({.flip = flip, .crop_pad = 0});
  }
}

TEST(EmulatedAugmentation, HasTheCpusBitsForMirroredPixels) {
  expect_the_cpus_images({.pad_mode = PadMode::kReflect});
  expect_the_cpus_images({.crop_pad = 7, .pad_mode = PadMode::kReflect});
}

TEST(EmulatedAugmentation, HasTheCpusBitsForBoxes) {
  expect_the_cpus_images({.erase = 0.5});
  expect_the_cpus_images({.cutmix = 1});
  expect_the_cpus_images({.flip = Flip::kAlternating, .erase = 1, .mixup = 0.4, .cutmix = 0.4});
}

// A training's own evaluations, its moving average's too, at 16 bits as well.
TEST(EmulatedViews, GiveTheCpusLoss) {
  for (const TestViews views : {TestViews::kFlip, TestViews::kShift}) {
    for (const OptLevel level : {OptLevel::kO0, OptLevel::kO2}) {
      const auto loss_on = [&](Device device) {
        emulation::reset_runtime();
        emulation::set_stream_order(emulation::StreamOrder::kLazy);
        trainers::ResolvedRun run = tiny_run(device, 2);
        run.request.precision = at_level(level);
        run.request.test.views = views;
        run.request.optimizer.ema = 0.5;
        return train_tiny(run).training.final->loss;
      };
      EXPECT_NEAR(
          loss_on(Device::kCuda), loss_on(Device::kCpu), level == OptLevel::kO0 ? 1e-4 : 0.05);
    }
  }
}

}  // namespace
}  // namespace lockstep::testing::augmentation_test
