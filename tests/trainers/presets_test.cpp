// The settings that --preset stands for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"
#include "trainers/config/optimizer_config.h"

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
  EXPECT_THAT(refusal("--preset apex-imagenet"), HasSubstr("bad value: --preset apex-imagenet"));
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
  for (const Options& options : {to_94, to_95}) {
    EXPECT_EQ(options.integer("global-batch-size"), 1024);
    EXPECT_TRUE(options.boolean("lr-per-1024"));
    EXPECT_EQ(options.text("tta"), "shift");
    const OptimizerConfig config = make_optimizer_config(options);
    ASSERT_EQ(config.groups.rules.size(), 2);
    EXPECT_TRUE(fits(config.groups.rules[0].pattern, "2.norm1.bias"));
    EXPECT_FALSE(fits(config.groups.rules[0].pattern, "2.conv1.weight"));
    EXPECT_EQ(config.groups.rules[1].epochs, 3);
  }
}

}  // namespace
}  // namespace lockstep::trainers::presets_test
