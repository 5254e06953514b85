// Tests --preset torchvision-v2, rsb-a2 and rsb-a3: settings, schedules and optimizer.
#include <cmath>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/settings/batch_division.h"
#include "engine/settings/optimizer_options.h"
#include "engine/update/schedule.h"
#include "tests/support/golden.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/run_request.h"
#include "trainers/report/run_report.h"

namespace lockstep::trainers::recipe_presets_test {
namespace {

using ::testing::HasSubstr;
using testing::options_of;

constexpr int64_t kImages = 1281167;

Options recipe(const std::string& line) {
  return options_of("DIR --preset " + line, {}, Program::kTrainResnet);
}

Tensor rates_of(const std::string& name) {
  return testing::golden_case("recipe_rates", name).tensor("rates");
}

// The schedule that the flags select, for ImageNet or for four epochs of five steps.
Schedule schedule_of(const Options& options, int64_t steps_per_epoch) {
  const OptimizerConfig config = make_optimizer_config(options);
  return {config.schedule, config.lr, options.number("epochs"), steps_per_epoch};
}

// The rates of torch's and timm's schedulers, which are updated each epoch.
TEST(RecipePresets, HaveTheRatesOfTheirSchedulers) {
  for (const char* name : {"torchvision-v2", "rsb-a2", "rsb-a3"}) {
    SCOPED_TRACE(name);
    const Options options = recipe(name);
    const int64_t steps = kImages / options.integer("global-batch-size");
    const Schedule schedule = schedule_of(options, steps);
    const Tensor rates = rates_of(name);
    ASSERT_EQ(options.number("epochs"), static_cast<double>(rates.numel()));
    for (int64_t epoch = 0; epoch < rates.numel(); ++epoch) {
      const double want = rates.data<float>()[epoch];
      EXPECT_NEAR(schedule.lr(epoch * steps), want, 1e-6 * want) << epoch;
      EXPECT_EQ(schedule.lr((epoch + 1) * steps - 1), schedule.lr(epoch * steps)) << epoch;
    }
  }
}

TEST(RecipePresets, DryRunsShowTheirRates) {
  const auto line = [](const char* name, size_t epoch) {
    const RunRequest request = make_run_request(recipe(name));
    return lr_lines(request, divide_batch(request.batch, request.device, 8, 1), kImages).at(epoch);
  };
  EXPECT_EQ(line("torchvision-v2", 4), "epoch 4 step 5005 lr 0.401 to step 6255 lr 0.401");
  EXPECT_EQ(line("torchvision-v2", 5), "epoch 5 step 6256 lr 0.5 to step 7506 lr 0.5");
  EXPECT_EQ(line("rsb-a2", 1), "epoch 1 step 626 lr 0.00108 to step 1250 lr 0.00108");
  EXPECT_EQ(line("rsb-a3", 0), "epoch 0 step 1 lr 0.0001 to step 625 lr 0.0001");
}

TEST(RecipePresets, OfTorchvisionHasItsSettings) {
  const RunRequest request = make_run_request(recipe("torchvision-v2"));
  EXPECT_EQ(request.arch, "resnet50");
  EXPECT_EQ(request.batch.global, 1024);
  EXPECT_EQ(request.batch.repeats, 4);
  EXPECT_FALSE(request.batch.drop_last);
  EXPECT_EQ(request.optimizer.kind, OptimizerKind::kSgd);
  EXPECT_EQ(request.optimizer.momentum, 0.9);
  EXPECT_EQ(request.optimizer.weight_decay, 2e-5);
  EXPECT_NEAR(std::pow(request.optimizer.ema, 32), 1 - 2e-5 * 1024 * 32 / 600, 1e-9);
  EXPECT_EQ(request.loss.label_smoothing, 0.1);
  EXPECT_FALSE(request.loss.binary);
  EXPECT_TRUE(request.augmentation.trivial);
  EXPECT_TRUE(request.augmentation.bilinear);
  EXPECT_EQ(request.augmentation.erase, 0.1);
  EXPECT_EQ(request.augmentation.mixup, 0.2);
  EXPECT_EQ(request.augmentation.cutmix, 1);
  EXPECT_EQ(request.photos.train_crop, 176);
  EXPECT_EQ(request.photos.val_resize, 232);
  EXPECT_EQ(request.photos.val_crop, 224);
  EXPECT_EQ(request.photos.val_by, data::Interpolation::kBilinear);
  EXPECT_EQ(request.photos.train_by, data::Interpolation::kBilinear);
  const auto decays = [&](std::string_view name) {
    for (const ParameterRule& rule : request.optimizer.groups.rules) {
      if (fits(rule.pattern, name)) return rule.weight_decay != 0;
    }
    return request.optimizer.groups.bias_decay;
  };
  for (const char* norm : {"bn1.weight", "layer1.0.bn3.bias", "layer1.0.downsample.1.weight"}) {
    EXPECT_FALSE(decays(norm)) << norm;
  }
  for (const char* other : {"conv1.weight", "layer1.0.downsample.0.weight", "fc.bias"}) {
    EXPECT_TRUE(decays(other)) << other;
  }
}

void expect_common_settings(const RunRequest& request) {
  EXPECT_EQ(request.arch, "resnet50");
  EXPECT_TRUE(request.zero_init_residual);
  EXPECT_EQ(request.batch.global, 2048);
  EXPECT_TRUE(request.batch.drop_last);
  EXPECT_EQ(request.optimizer.kind, OptimizerKind::kLamb);
  EXPECT_EQ(request.optimizer.weight_decay, 0.02);
  EXPECT_FALSE(request.optimizer.groups.bias_decay);
  EXPECT_EQ(request.optimizer.clip_grad_norm, 1);
  EXPECT_EQ(request.loss.label_smoothing, 0);
  EXPECT_TRUE(request.loss.binary);
  EXPECT_EQ(request.loss.target_threshold, 0.2F);
  EXPECT_EQ(request.augmentation.mixup, 0.1);
  EXPECT_EQ(request.augmentation.cutmix, 1);
  EXPECT_EQ(request.augmentation.erase, 0);
  EXPECT_EQ(request.augmentation.rand.layers, 2);
  EXPECT_EQ(request.augmentation.rand.deviation, 0.5);
  EXPECT_TRUE(request.augmentation.rand.increasing);
  EXPECT_EQ(request.photos.val_resize, 235);
  EXPECT_EQ(request.photos.val_crop, 224);
  EXPECT_EQ(request.photos.val_by, data::Interpolation::kBicubic);
  EXPECT_EQ(request.photos.train_by, std::nullopt);
}

TEST(RecipePresets, OfResnetStrikesBackHaveItsSettings) {
  const RunRequest a2 = make_run_request(recipe("rsb-a2"));
  expect_common_settings(a2);
  EXPECT_EQ(a2.drop_path, 0.05);
  EXPECT_EQ(a2.batch.repeats, 3);
  EXPECT_EQ(a2.augmentation.rand.magnitude, 7);
  EXPECT_EQ(a2.photos.train_crop, 224);
  const RunRequest a3 = make_run_request(recipe("rsb-a3"));
  expect_common_settings(a3);
  EXPECT_EQ(a3.drop_path, 0);
  EXPECT_EQ(a3.batch.repeats, 1);
  EXPECT_EQ(a3.augmentation.rand.magnitude, 6);
  EXPECT_EQ(a3.photos.train_crop, 160);
}

TEST(Lamb, LimitsGradientsUnlessAskedNotTo) {
  const auto limit = [](const char* line) {
    return make_optimizer_config(options_of(line)).clip_grad_norm;
  };
  EXPECT_EQ(limit(""), 0);
  EXPECT_EQ(limit("--opt lamb"), 1);
  EXPECT_EQ(limit("--opt lamb --clip-grad-norm 0"), 0);
  EXPECT_EQ(limit("--opt lamb --clip-grad-norm 2.5"), 2.5);
}

// The rates of timm's schedulers, which are updated each step.
TEST(WarmupPrefix, OffLetsTheScheduleBeginWithTheRun) {
  const std::string warmup = "--epochs 4 --lr 0.1 --warmup-epochs 2 --warmup-decay 0.25 ";
  for (const auto& [name, flags] : {std::pair{"cosine", "--lr-scheduler cosine --min-lr 0.01"},
                                    std::pair{"poly", "--lr-scheduler poly --poly-power 0.9"}}) {
    const Schedule schedule = schedule_of(options_of(warmup + flags + " --no-warmup-prefix"), 5);
    const Tensor rates = rates_of(name);
    for (int64_t step = 0; step < rates.numel(); ++step) {
      EXPECT_NEAR(schedule.lr(step), rates.data<float>()[step], 1e-8) << name << " " << step;
    }
  }
  const Schedule linear =
      schedule_of(options_of(warmup + "--lr-scheduler linear --no-warmup-prefix"), 5);
  EXPECT_NEAR(linear.lr(9), 0.1 * (0.25 + 0.75 * 9 / 10), 1e-12);
  EXPECT_NEAR(linear.lr(10), 0.05, 1e-12);
}

std::string refused(const std::string& line) {
  const auto error = testing::usage_error([&] { make_optimizer_config(options_of(line)); });
  return error ? fmt::format("{} | {} | {}", error->what(), error->why(), error->hint()) : "none";
}

TEST(MinLr, IsInTheUnitOfTheRate) {
  EXPECT_EQ(make_optimizer_config(options_of("--lr-scheduler cosine --lr 0")).schedule.min_factor,
            0);
  const std::string line = "--lr-scheduler cosine --lr 0.1 --lr-min 0.025 ";
  EXPECT_EQ(make_optimizer_config(options_of(line)).schedule.min_factor, 0.25);
  EXPECT_EQ(make_optimizer_config(options_of(line + "--scale-lr")).schedule.min_factor, 0.25);
  EXPECT_EQ(refused("--lr-scheduler cosine --lr 0.1 --min-lr 0.2"),
            "--min-lr 0.2 is above --lr 0.1 | the rate falls from one to the other | --min-lr "
            "1e-6, or a greater --lr");
  EXPECT_EQ(refused("--lr-scheduler cosine --lr 0.1 --min-lr 0.1"), "none");
}

// A flag that was given replaces what a preset set, and what the preset set beside it does nothing.
TEST(RecipePresets, GivenFlagsTurnTheirPartsOff) {
  for (const char* preset :
       {"torchvision-v2", "rsb-a2", "rsb-a3", "ffcv-16", "cifar-94", "cifar-96"}) {
    for (const char* flag : {"--weight-decay 0", "--no-eval", "--crop-pad 0"}) {
      const std::string line = fmt::format("{} {}", preset, flag);
      EXPECT_NO_THROW((void)make_run_request(recipe(line))) << line;
    }
  }
  EXPECT_EQ(make_run_request(recipe("rsb-a3 --loss ce")).loss.target_threshold, std::nullopt);
  EXPECT_EQ(make_run_request(recipe("ffcv-16 --res-from 0")).photos.train_ramp.from, 0);
  const RunRequest erasing = make_run_request(recipe("cifar-96 --random-erase 0.2"));
  EXPECT_EQ(erasing.augmentation.cutout, 0);
  EXPECT_EQ(erasing.augmentation.erase, 0.2);
  EXPECT_EQ(make_run_request(recipe("cifar-94 --crop-pad 0")).augmentation.pad_mode, std::nullopt);
}

TEST(MinLr, IsRefusedWhereNothingFallsToIt) {
  for (const char* line : {"--min-lr 1e-6",
                           "--lr-scheduler linear --min-lr 1e-6",
                           "--no-warmup-prefix --lr-scheduler cosine",
                           "--no-warmup-prefix --lr-scheduler step",
                           "--no-warmup-prefix --warmup-epochs 2",
                           "--no-warmup-prefix --warmup-epochs 2 --lr-scheduler plateau"}) {
    EXPECT_THAT(refused(line), HasSubstr("would change nothing")) << line;
  }
}

}  // namespace
}  // namespace lockstep::trainers::recipe_presets_test
