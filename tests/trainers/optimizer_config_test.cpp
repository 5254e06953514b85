#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/settings/optimizer_options.h"
#include "engine/update/make_optimizer.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/run_request.h"
#include "trainers/report/run_report.h"

namespace lockstep::trainers::optimizer_config_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::options_of;
using testing::usage_error;

OptimizerConfig config_of(const std::string& line) {
  return make_optimizer_config(options_of(line));
}

// what | why | hint, or "accepted".
std::string refusal(const std::string& line) {
  const auto error = usage_error([&] { config_of(line); });
  if (!error) return "accepted";
  return fmt::format("{} | {} | {}", error->what(), error->why(), error->hint());
}

TEST(OptimizerConfig, DefaultsOfTrainConvnet) {
  const OptimizerConfig config = config_of("");
  EXPECT_EQ(config.kind, OptimizerKind::kSgd);
  EXPECT_EQ(config.lr, 0.02);
  EXPECT_EQ(config.momentum, 0.9);
  EXPECT_EQ(config.weight_decay, 0);
  EXPECT_TRUE(config.groups.bias_decay);
  EXPECT_FALSE(config.lookahead);
  EXPECT_EQ(config.schedule.kind, ScheduleKind::kConstant);
  EXPECT_EQ(config.schedule.warmup_epochs, 0);
}

// main.py: SGD, and StepLR(30, 0.1) without warmup.
TEST(OptimizerConfig, DefaultsOfTrainResnet) {
  const OptimizerConfig config =
      make_optimizer_config(options_of("--dummy", {}, Program::kTrainResnet));
  EXPECT_EQ(config.lr, 0.1);
  EXPECT_EQ(config.momentum, 0.9);
  EXPECT_EQ(config.weight_decay, 1e-4);
  EXPECT_EQ(config.schedule.kind, ScheduleKind::kStep);
  EXPECT_EQ(config.schedule.step_epochs, 30);
  EXPECT_EQ(config.schedule.gamma, 0.1);
  EXPECT_EQ(config.schedule.warmup_epochs, 0);
}

TEST(OptimizerConfig, TakesOverEveryValue) {
  const OptimizerConfig config = config_of(
      "--opt adamw --lr 0.5 --scale-lr --wd 1e-3 --no-bias-decay --lookahead --lookahead-k 7 "
      "--lookahead-alpha 0.25 --lookahead-variant paper --lr-scheduler multistep --lr-milestones "
      "3,70,100 --gamma 0.2 --lr-warmup-epochs 4 --lr-warmup-decay 0.5 --no-sched-on-updates");
  EXPECT_EQ(config.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(config.base_lr(1024), 2);
  EXPECT_EQ(config.weight_decay, 1e-3);
  EXPECT_FALSE(config.groups.bias_decay);
  ASSERT_TRUE(config.lookahead);
  EXPECT_EQ(config.lookahead->k, 7);
  EXPECT_EQ(config.lookahead->alpha, 0.25);
  EXPECT_EQ(config.lookahead->variant, nn::LookaheadVariant::kPaper);
  EXPECT_EQ(config.schedule.kind, ScheduleKind::kMultiStep);
  EXPECT_THAT(config.schedule.milestones, ElementsAre(3, 70, 100));
  EXPECT_EQ(config.schedule.gamma, 0.2);
  EXPECT_FALSE(config.schedule.on_updates);
  EXPECT_EQ(config.schedule.warmup_epochs, 4);
  EXPECT_EQ(config.schedule.warmup.method, WarmupMethod::kLinear);
  EXPECT_EQ(config.schedule.warmup.decay, 0.5);

  const OptimizerConfig plateau = config_of(
      "--opt adam --lr-schedule plateau --plateau-on acc --patience-epochs 6 --plateau-threshold "
      "0.01 --warmup-epochs 2 --warmup-method apex");
  EXPECT_EQ(plateau.kind, OptimizerKind::kAdam);
  EXPECT_EQ(plateau.schedule.kind, ScheduleKind::kPlateau);
  EXPECT_TRUE(plateau.schedule.plateau.on_accuracy);
  EXPECT_TRUE(plateau.schedule.plateau.upwards);
  const std::string on_plateau = "--lr-scheduler plateau";
  EXPECT_FALSE(config_of(on_plateau).schedule.plateau.upwards);
  EXPECT_TRUE(config_of(on_plateau + " --plateau-mode max").schedule.plateau.upwards);
  EXPECT_FALSE(
      config_of(on_plateau + " --plateau-on acc --plateau-mode min").schedule.plateau.upwards);
  EXPECT_EQ(plateau.schedule.plateau.patience, 6);
  EXPECT_EQ(plateau.schedule.plateau.threshold, 0.01);
  EXPECT_EQ(plateau.schedule.warmup.method, WarmupMethod::kApex);
  EXPECT_EQ(config_of("--lr-scheduler step --lr-step-size 3").schedule.step_epochs, 3);
  EXPECT_TRUE(config_of("--nesterov").nesterov);
  EXPECT_EQ(config_of("--opt muon --muon-dtype bf16").muon_dtype, Dtype::kBF16);
}

// Item 1.2: 208 images per rank; .65 on 8 ranks, 5.2 on 64.
TEST(OptimizerConfig, ScalesTheLearningRateByTheBatch) {
  EXPECT_DOUBLE_EQ(config_of("--lr 0.1 --scale-lr").base_lr(208 * 8), 0.65);
  EXPECT_DOUBLE_EQ(config_of("--lr 0.1 --scale-lr").base_lr(208 * 64), 5.2);
  EXPECT_EQ(config_of("--lr 0.1").base_lr(208 * 8), 0.1);
}

// airbench94 has a rate of 11.5, a decay of 0.0153 and a loss that is a sum over the batch. Its
// rate is therefore multiplied by the batch, and its decay divided by it.
TEST(OptimizerConfig, RateAndDecayMayBeFor1024ImagesAndAnyMomentum) {
  const std::string line = "--lr-per-1024 --lr 11.5 --wd 0.0153 --momentum 0.85";
  EXPECT_DOUBLE_EQ(config_of(line).base_lr(1024), 1.5);
  EXPECT_DOUBLE_EQ(config_of(line).base_lr(512), 0.75);
  const double scale = 1024 * (1 + 1 / (1 - 0.85));
  for (const int64_t batch : {512, 1024, 2000}) {
    const auto images = static_cast<double>(batch);
    const double rate_of_sum = 11.5 / scale;
    const double decay_of_sum = 0.0153 * images / scale / rate_of_sum;
    EXPECT_DOUBLE_EQ(config_of(line).base_lr(batch), rate_of_sum * images);
    EXPECT_DOUBLE_EQ(config_of(line).base_decay(), decay_of_sum / images);
  }
  EXPECT_DOUBLE_EQ(config_of("--lr-per-1024 --lr 11.5 --momentum 0").base_lr(1024), 5.75);
  EXPECT_EQ(config_of("--lr 11.5 --wd 0.0153").base_decay(), 0.0153);
  EXPECT_THAT(refusal("--lr-per-1024 --scale-lr"), HasSubstr("contradict each other"));
  EXPECT_THAT(refusal("--lr-per-1024 --opt adam"), HasSubstr("needs --opt sgd"));
  EXPECT_THAT(refusal("--lr-per-1024 --lr 0"), HasSubstr("with --momentum 0.9 and --lr 0 | "));
  EXPECT_THAT(refusal("--lr-per-1024 --momentum 1"), HasSubstr("it divides by 1 - momentum"));
}

TEST(OptimizerConfig, NesterovNeedsMomentum) {
  EXPECT_THAT(refusal("--nesterov --momentum 0"),
              HasSubstr("--nesterov needs a momentum above 0 | "));
}

TEST(OptimizerConfig, MilestonesAscend) {
  for (const char* bad : {"0", "3,3", "5,4", "a", "1,,2", ",", "1.5", "-1"}) {
    EXPECT_EQ(refusal(fmt::format("--lr-scheduler multistep --lr-milestones={}", bad)),
              fmt::format("bad value: --lr-milestones {} | --lr-milestones takes ascending epochs "
                          "from 1, separated by commas | --lr-milestones 100,150",
                          bad));
  }
  EXPECT_EQ(refusal("--lr-scheduler multistep"),
            "--lr-scheduler multistep needs milestones | it cuts the learning rate at the epochs "
            "of --lr-milestones | --lr-milestones 100,150");
}

TEST(OptimizerConfig, PolyAndOneCycleHaveTheirFlags) {
  const ScheduleOptions poly = config_of("--lr-schedule poly --poly-power 0.9").schedule;
  EXPECT_EQ(poly.kind, ScheduleKind::kPoly);
  EXPECT_EQ(poly.power, 0.9);
  const ScheduleOptions cycle = config_of(
                                    "--lr-scheduler onecycle --onecycle-pct-start 0.2 "
                                    "--onecycle-div-factor 10 --onecycle-final-div-factor 7")
                                    .schedule;
  EXPECT_EQ(cycle.kind, ScheduleKind::kOneCycle);
  EXPECT_EQ(cycle.one_cycle.pct_start, 0.2);
  EXPECT_EQ(cycle.one_cycle.div, 10);
  EXPECT_EQ(cycle.one_cycle.final_div, 7);
  EXPECT_EQ(refusal("--lr-scheduler onecycle --warmup-epochs 2"),
            "--lr-scheduler onecycle and --warmup-epochs contradict each other | it begins with a "
            "rise of its own, a part of the run long | --onecycle-pct-start X instead of "
            "--warmup-epochs");
}

TEST(OptimizerConfig, TriangularHasItsFlags) {
  const std::string line = "--lr-scheduler triangular";
  EXPECT_EQ(config_of(line).schedule.kind, ScheduleKind::kTriangular);
  EXPECT_EQ(config_of(line).schedule.triangular.start, 0.2);
  EXPECT_EQ(config_of(line).schedule.triangular.peak, 0.23);
  EXPECT_EQ(config_of(line).schedule.triangular.end, 0.07);
  const TriangularOptions other =
      config_of(line + " --triangular-start 0.5 --triangular-peak 0.75 --triangular-end 0.25")
          .schedule.triangular;
  EXPECT_EQ(other.start, 0.5);
  EXPECT_EQ(other.peak, 0.75);
  EXPECT_EQ(other.end, 0.25);
  EXPECT_THAT(refusal(line + " --warmup-epochs 2"),
              HasSubstr("--lr-scheduler triangular and --warmup-epochs contradict each other"));
}

TEST(OptimizerConfig, LarcIsApexsAroundSgd) {
  EXPECT_FALSE(config_of("").larc);
  const OptimizerConfig plain = config_of("--larc");
  ASSERT_TRUE(plain.larc);
  EXPECT_EQ(plain.larc->trust_coefficient, 0.02);
  EXPECT_TRUE(plain.larc->clip);
  const OptimizerConfig scaling = config_of("--larc --trust-coefficient 1e-3 --no-larc-clip");
  EXPECT_EQ(scaling.larc->trust_coefficient, 1e-3);
  EXPECT_FALSE(scaling.larc->clip);
  EXPECT_EQ(refusal("--larc --opt adamw"),
            "--larc needs --opt sgd | it scales SGD's steps by gradient norms, on which the other "
            "optimizers' steps do not depend | --opt sgd, or no --larc");
  EXPECT_THAT(refusal("--larc --trust-coefficient 0"), HasSubstr("leaves all weights"));
}

TEST(OptimizerConfig, AnAverageHasTimmsAndTorchvisionsNames) {
  EXPECT_EQ(config_of("").ema, 0);
  EXPECT_EQ(config_of("--ema 0.99").ema, 0.99);
  EXPECT_EQ(config_of("--model-ema-decay 0.99").ema, 0.99);
  EXPECT_EQ(config_of("--model-ema").ema, 0.9999);
  EXPECT_THAT(refusal("--ema 1"), HasSubstr("--ema 1 averages nothing"));
  EXPECT_EQ(make_run_request(options_of("--mixup-alpha 0.2")).augmentation.mixup, 0.2);
}

TEST(OptimizerConfig, FrozenCosineHasTheRateAfterTheWarmUpToItself) {
  const std::string frozen = "--warmup-epochs 2 --warmup-method frozen-cosine ";
  for (const char* fits : {"--lr-scheduler const", "--lr-scheduler plateau", "--warmup-decay 0"}) {
    EXPECT_EQ(refusal(frozen + fits), "accepted") << fits;
  }
  EXPECT_THAT(refusal(frozen + "--lr-scheduler cosine"),
              HasSubstr("frozen-cosine needs --lr-scheduler const or plateau"));
}

TEST(OptimizerConfig, FlagsThatWouldChangeNothingAreRefused) {
  EXPECT_EQ(refusal("--lr-step-size 10"),
            "--lr-step-size would change nothing | nothing in this run uses it | "
            "--lr-scheduler step; or leave --lr-step-size out");
  for (const char* line : {"--opt adam --momentum 0.9",
                           "--opt adamw --nesterov",
                           "--muon-dtype bf16",
                           "--lr-scheduler cosine --lr-gamma 0.5",
                           "--lr-scheduler step --lr-milestones 3",
                           "--poly-power 2",
                           "--onecycle-pct-start 0.2",
                           "--onecycle-div-factor 10",
                           "--onecycle-final-div-factor 10",
                           "--triangular-start 0.1",
                           "--triangular-peak 0.1",
                           "--triangular-end 0.1",
                           "--plateau-on acc",
                           "--plateau-mode min",
                           "--plateau-patience 3",
                           "--plateau-threshold 0.1",
                           "--warmup-method apex",
                           "--warmup-decay 0.1",
                           "--warmup-epochs 3 --warmup-method apex --warmup-decay 0.1",
                           "--trust-coefficient 0.1",
                           "--no-larc-clip",
                           "--lookahead-k 5",
                           "--lookahead-alpha 0.1",
                           "--lookahead-variant paper"}) {
    EXPECT_THAT(refusal(line), HasSubstr("would change nothing")) << line;
  }
  EXPECT_EQ(refusal("--opt adam"), "accepted") << "momentum's default is no demand";
  EXPECT_EQ(refusal("--opt muon --momentum 0.95 --nesterov"), "accepted");
}

TEST(OptimizerConfig, BadValuesAreRefusedInThreeLines) {
  EXPECT_EQ(testing::refusal("--opt rmsprop"),
            "bad value: --opt rmsprop | --opt takes one of sgd, adam, adamw, muon, lamb | "
            "train_convnet --help");
  for (const char* line : {"--lr-scheduler polynomial",
                           "--lr-step-size 0",
                           "--lr-gamma 1.5",
                           "--lr-gamma x",
                           "--warmup-epochs -1",
                           "--warmup-method constant",
                           "--warmup-decay 2",
                           "--poly-power -1",
                           "--onecycle-pct-start 1.1",
                           "--onecycle-div-factor 0.5",
                           "--onecycle-final-div-factor 0",
                           "--plateau-on f1",
                           "--plateau-mode up",
                           "--plateau-patience -1",
                           "--plateau-threshold 2",
                           "--trust-coefficient -1",
                           "--larc=maybe",
                           "--lookahead-k 0",
                           "--lookahead-alpha 1.1",
                           "--lookahead-variant other",
                           "--opt muon --muon-dtype f16",
                           "--scale-lr=maybe",
                           "--lr-dry-run=maybe",
                           "--sched-on-updates=maybe",
                           "--bias-decay=maybe",
                           "--lookahead=maybe",
                           "--ema 1.1",
                           "--ema -0.1",
                           "--mixup -1"}) {
    EXPECT_THAT(testing::refusal(line), HasSubstr("bad value: ")) << line;
    EXPECT_THAT(testing::refusal(line), HasSubstr(" takes ")) << line;
  }
}

std::vector<std::string> state_names(const std::string& line) {
  const auto named = [](const char* name, const Shape& shape) {
    return nn::NamedParameter{name, Var(Tensor::zeros(shape, Dtype::kF32), true), shape};
  };
  std::vector<std::string> names;
  const auto optimizer = make_optimizer(config_of(line), {named("b", {2}), named("w", {2, 2})});
  for (const nn::StateEntry& entry : optimizer->state()) names.push_back(entry.name);
  return names;
}

TEST(MakeOptimizer, IsWhatTheFlagsAskFor) {
  EXPECT_THAT(state_names(""), ElementsAre("b.momentum_buffer", "w.momentum_buffer"));
  EXPECT_THAT(state_names("--momentum 0"), ElementsAre());
  EXPECT_THAT(state_names("--no-bias-decay"),
              ElementsAre("w.momentum_buffer", "b.momentum_buffer"));
  EXPECT_THAT(state_names("--opt adam"),
              ElementsAre("b.exp_avg", "w.exp_avg", "b.exp_avg_sq", "w.exp_avg_sq", "adam.step"));
  EXPECT_THAT(state_names("--opt lamb"),
              ElementsAre("b.exp_avg", "w.exp_avg", "b.exp_avg_sq", "w.exp_avg_sq", "adam.step"));
  EXPECT_THAT(state_names("--opt muon"), ElementsAre("w.momentum_buffer", "b.momentum_buffer"));
  EXPECT_THAT(state_names("--opt muon --momentum 0"), ElementsAre());
  EXPECT_THAT(state_names("--momentum 0 --lookahead"),
              ElementsAre("b.slow", "w.slow", "lookahead.counter"));
  EXPECT_THAT(state_names("--momentum 0 --lookahead --ema 0.9"),
              ElementsAre("b.slow", "w.slow", "lookahead.counter", "b.ema", "w.ema", "ema.step"));
}

// A weight and a bias of 1 after one step with rate 0.5 and gradients of 0.
std::vector<float> decayed(const std::string& line) {
  std::vector<nn::NamedParameter> parameters;
  for (const Shape& shape : {Shape{1, 1}, Shape{1}}) {
    Tensor one = Tensor::empty(shape, Dtype::kF32);
    *one.data<float>() = 1;
    parameters.push_back({"p", Var(one, true), shape});
    parameters.back().var.set_grad(Tensor::zeros(shape, Dtype::kF32));
  }
  Stream stream;
  make_optimizer(config_of("--lr 0.5 --wd 0.5 " + line), parameters)->step(stream);
  return {*parameters[0].var.value().data<float>(), *parameters[1].var.value().data<float>()};
}

TEST(MakeOptimizer, DecaysWhatIsAskedFor) {
  EXPECT_THAT(decayed(""), ElementsAre(0.75F, 0.75F));
  EXPECT_THAT(decayed("--no-bias-decay"), ElementsAre(0.75F, 1));
  EXPECT_THAT(decayed("--opt adamw --no-bias-decay"), ElementsAre(0.75F, 1));
  EXPECT_THAT(decayed("--lr-per-1024 --momentum 0"), ElementsAre(0.5F, 0.5F)) << "0.5 * 0.5 / 0.5";
  EXPECT_NEAR(decayed("--opt adam")[0], 0.5, 1e-6) << "the decay is part of the gradient";
}

TEST(MakeOptimizer, LarcHasItsFlags) {
  EXPECT_THAT(decayed("--larc"), ElementsAre(1, 1)) << "no gradient, no decay";
}

std::vector<std::string> lines_of(const std::string& line, int64_t batch, int64_t images) {
  return lr_lines(make_run_request(options_of(line)), {.images = batch}, images);
}

TEST(LrDryRun, ShowsFirstAndLastStepOfEachEpoch) {
  EXPECT_THAT(lines_of("--lr 0.1 --scale-lr --epochs 3 --warmup-epochs 1 --warmup-method apex "
                       "--lr-scheduler multistep --lr-milestones 2 --no-warmup-prefix",
                       208 * 8,
                       200 * 208 * 8),
              ElementsAre("epoch 0 step 1 lr 0.0065 to step 200 lr 0.65325",
                          "epoch 1 step 201 lr 0.65 to step 400 lr 0.65",
                          "epoch 2 step 401 lr 0.065 to step 600 lr 0.065"));
}

TEST(LrDryRun, ShowsEveryStepOfAShortRun) {
  EXPECT_THAT(lines_of("--lr 1 --epochs 2 --lr-scheduler linear", 10, 15),
              ElementsAre("epoch 0 step 1 lr 1",
                          "epoch 0 step 2 lr 0.75",
                          "epoch 1 step 3 lr 0.5",
                          "epoch 1 step 4 lr 0.25"));
  EXPECT_THAT(
      lines_of("--lr 1 --max-steps 2 --lr-scheduler plateau", 10, 1000),
      ElementsAre(
          "epoch 0 step 1 lr 1", "epoch 0 step 2 lr 1", "--lr-scheduler plateau may cut these"));
}

TEST(LrDryRun, BeginsWithTheFirstEpoch) {
  EXPECT_THAT(
      lines_of("--lr 1 --epochs 4 --start-epoch 2 --max-steps 3 --lr-scheduler "
               "linear",
               10,
               20),
      ElementsAre("epoch 2 step 5 lr 0.5", "epoch 2 step 6 lr 0.375", "epoch 3 step 7 lr 0.25"));
}

TEST(LrDryRun, APartOfAnEpochHasItsPartOfTheSteps) {
  EXPECT_THAT(lines_of("--lr 1 --epochs 1.5 --lr-scheduler linear", 10, 40),
              ElementsAre("epoch 0 step 1 lr 1",
                          "epoch 0 step 2 lr 0.8333333",
                          "epoch 0 step 3 lr 0.6666667",
                          "epoch 0 step 4 lr 0.5",
                          "epoch 1 step 5 lr 0.3333333",
                          "epoch 1 step 6 lr 0.1666667"));
  EXPECT_EQ(steps_of(9.9, 48), 476);
  EXPECT_EQ(steps_of(1.1, 100), 110);
  EXPECT_EQ(steps_of(1.001, 10), 11);
  EXPECT_EQ(steps_of(90, 1), 90);
  EXPECT_EQ(steps_of(2.1, 1), 3);
  EXPECT_EQ(steps_of(1e6, 999'999'999), 999'999'999'000'000);
}

TEST(LrDryRun, ALastEpochMayBeCut) {
  const auto lines = lines_of("--lr 1 --max-steps 150", 10, 1000);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], "epoch 1 step 101 lr 1 to step 150 lr 1");
}

}  // namespace
}  // namespace lockstep::trainers::optimizer_config_test
