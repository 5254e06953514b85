// The settings that --preset stands for.
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/settings/optimizer_options.h"
#include "engine/update/schedule.h"
#include "tests/support/golden.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/run_request.h"

namespace lockstep::trainers::presets_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::options_of;
using testing::refusal;

TEST(Presets, AreTheTutorials) {
  const Options baseline = options_of("--preset demo-baseline");
  EXPECT_EQ(baseline.integer("batch-size"), 32);
  EXPECT_EQ(baseline.number("lr"), 1e-4);
  EXPECT_EQ(baseline.number("momentum"), 0.0);
  EXPECT_EQ(baseline.number("epochs"), 3);
  EXPECT_FALSE(baseline.boolean("sync-bn"));
  EXPECT_THAT(baseline.notes, IsEmpty());
  const Options ddp = options_of("--preset demo-ddp");
  EXPECT_TRUE(ddp.boolean("sync-bn"));
  EXPECT_EQ(ddp.text("opt-level"), "O1");
  EXPECT_THAT(ddp.notes, IsEmpty());
  EXPECT_FALSE(options_of("--preset demo-ddp --no-sync-bn").boolean("sync-bn"));
  for (const std::string preset : {"--preset demo-baseline", "--preset demo-ddp"}) {
    EXPECT_EQ(options_of(preset).integer("eval-freq"), kMaxEpochs) << "at the end alone";
    EXPECT_EQ(options_of(preset + " --eval-freq 1").integer("eval-freq"), 1);
  }
}

TEST(Presets, OfImagenetAreTheExamples) {
  const auto resnet = [](const std::string& line) {
    return options_of("DIR --preset " + line, {}, Program::kTrainResnet);
  };
  const Options main_py = resnet("imagenet-main");
  EXPECT_EQ(main_py.text("arch"), "resnet18");
  EXPECT_EQ(main_py.integer("global-batch-size"), 256);
  EXPECT_EQ(main_py.text("lr-scheduler"), "step");
  EXPECT_FALSE(main_py.boolean("scale-lr"));
  const Options apex = resnet("apex-imagenet");
  EXPECT_EQ(apex.integer("batch-size"), 256);
  EXPECT_TRUE(apex.boolean("scale-lr"));
  EXPECT_EQ(apex.integer("warmup-epochs"), 5);
  EXPECT_EQ(apex.text("lr-milestones"), "30,60,80");
  EXPECT_FALSE(apex.boolean("warmup-prefix")) << "they count from epoch 0";
  EXPECT_THAT(refusal("--preset apex-imagenet"), HasSubstr("bad value: --preset apex-imagenet"));
}

// The rates of three steps of each epoch and the sizes of its images, for 1,281,167 images.
TEST(Presets, OfFfcvHaveItsRatesAndSides) {
  constexpr std::array kSteps = {0, 100, 311};
  constexpr int64_t kStepsPerEpoch = 1281167 / 4096;
  for (const char* epochs : {"16", "32", "88"}) {
    SCOPED_TRACE(epochs);
    const Options options =
        options_of(fmt::format("DIR --preset ffcv-{}", epochs), {}, Program::kTrainResnet);
    const RunRequest request = make_run_request(options);
    const testing::GoldenCase golden =
        testing::golden_case("ffcv_epochs", fmt::format("rn50_{}", epochs));
    ASSERT_EQ(request.epochs, golden.number("epochs"));
    const Schedule schedule(request.schedule,
                            request.optimizer.base_lr(*request.batch.global),
                            request.epochs,
                            kStepsPerEpoch);
    const Tensor rates = golden.tensor("rates");
    const Tensor sides = golden.tensor("sides");
    for (int64_t epoch = 0; epoch < request.epoch_count(); ++epoch) {
      const data::PhotoOptions& photos = request.photos;
      EXPECT_EQ(photos.train_ramp.side(epoch, photos.train_crop), sides.data<int64_t>()[epoch]);
      for (size_t i = 0; i < kSteps.size(); ++i) {
        const double want = rates.data<float>()[static_cast<size_t>(epoch) * kSteps.size() + i];
        EXPECT_NEAR(schedule.lr(epoch * kStepsPerEpoch + kSteps[i]), want, 1e-6) << epoch;
      }
    }
    EXPECT_TRUE(request.blur_pool);
    EXPECT_EQ(name_of(request.test.views), std::string("flip"));
    const std::vector<ParameterRule>& rules = request.optimizer.groups.rules;
    ASSERT_EQ(rules.size(), 1U);
    EXPECT_EQ(rules[0].weight_decay, 0);
    EXPECT_TRUE(fits(rules[0].pattern, "layer1.0.bn3.bias"));
    EXPECT_FALSE(fits(rules[0].pattern, "layer1.0.downsample.1.weight"));
  }
}

TEST(Presets, OfCifarAreAirbenchs) {
  const auto resnet = [](const std::string& line) {
    return options_of("DIR --preset " + line, {}, Program::kTrainResnet);
  };
  const Options to_94 = resnet("cifar-94");
  EXPECT_EQ(to_94.text("arch"), "airbench94");
  EXPECT_EQ(to_94.number("epochs"), 9.9);
  EXPECT_EQ(to_94.number("lr"), 11.5);
  const Options to_95 = resnet("cifar-95");
  EXPECT_EQ(to_95.text("arch"), "airbench95");
  EXPECT_EQ(to_95.number("epochs"), 15);
  EXPECT_EQ(to_95.number("lr"), 10);
  const Options to_96 = resnet("cifar-96");
  EXPECT_EQ(to_96.text("arch"), "airbench96");
  EXPECT_EQ(to_96.number("epochs"), 37);
  EXPECT_EQ(to_96.number("lr"), 9);
  EXPECT_EQ(to_96.number("weight-decay"), 0.012);
  EXPECT_EQ(to_96.number("triangular-peak"), 0.1);
  EXPECT_EQ(to_96.number("triangular-end"), 0);
  EXPECT_EQ(to_96.integer("crop-pad"), 4);
  EXPECT_EQ(to_96.integer("cutout"), 12);
  for (const Options& options : {to_94, to_95}) {
    EXPECT_EQ(options.number("weight-decay"), 0.0153);
    EXPECT_EQ(options.integer("crop-pad"), 2);
    EXPECT_EQ(options.integer("cutout"), 0);
  }
  for (const Options& options : {to_94, to_95, to_96}) {
    EXPECT_EQ(options.integer("global-batch-size"), 1024);
    EXPECT_TRUE(options.boolean("lr-per-1024"));
    EXPECT_EQ(options.text("tta"), "shift");
    EXPECT_GE(options.integer("eval-freq"), options.number("epochs")) << "at the end alone";
    const OptimizerConfig config = make_optimizer_config(options);
    ASSERT_EQ(config.groups.rules.size(), 2);
    EXPECT_TRUE(fits(config.groups.rules[0].pattern, "2.norm1.bias"));
    EXPECT_FALSE(fits(config.groups.rules[0].pattern, "2.conv1.weight"));
    EXPECT_EQ(config.groups.rules[1].epochs, 3);
  }
}

}  // namespace
}  // namespace lockstep::trainers::presets_test
