// A Trainer with f32 samples, targets and a loss of the caller's.
#include <cmath>
#include <filesystem>
#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include "comm/single.h"
#include "data/tensor_dataset.h"
#include "nn/layers.h"
#include "tests/engine/trainings.h"
#include "tests/support/temp_dir.h"

namespace lockstep::testing::regression_test {
namespace {

using ::testing::HasSubstr;

// y = sin(3 a) + b for points in a square; 64 to train on, 10 to test.
std::shared_ptr<const data::Dataset> points(int64_t count, uint32_t seed) {
  Mt19937 rng(seed);
  Tensor x = Tensor::empty({count, 2}, Dtype::kF32);
  Tensor y = Tensor::empty({count}, Dtype::kF32);
  rng.uniform(x.span<float>(), -1, 1);
  for (int64_t i = 0; i < count; ++i) {
    y.data<float>()[i] = std::sin(3 * x.data<float>()[2 * i]) + x.data<float>()[2 * i + 1];
  }
  return std::make_shared<data::TensorDataset>("points", x, y);
}

class Mlp : public nn::Module {
 public:
  explicit Mlp(const nn::Init& init, int64_t outputs = 1)
      : hidden_(init, 2, 16), out_(init, 16, outputs) {
    register_module("hidden", hidden_);
    register_module("out", out_);
  }
  Var forward(const Var& x) override { return out_.forward(nn::gelu(hidden_.forward(x))); }

 private:
  nn::Linear hidden_, out_;
};

TrainerOptions options_of_points() {
  TrainerOptions options = short_options();
  options.optimizer = {.kind = OptimizerKind::kAdam, .lr = 0.02};
  options.epochs = 20;
  options.test_batch = 3;
  return options;
}

struct Figures {
  double first_loss = 0, last_loss = 0, test_loss = 0;
  std::vector<float> weights, outputs, targets;

  bool operator==(const Figures&) const = default;
};

// From `state` on where it is given.
Figures regress(int ranks,
                const TrainerOptions& options,
                int64_t steps,
                const std::filesystem::path& state = {},
                const std::filesystem::path& to = {}) {
  Figures figures;
  spawn(ranks, [&](Communicator& peers) {
    Mt19937 rng(42);
    Mlp network(nn::Init{rng});
    Trainer trainer(
        peers, network, {points(64, 1), points(10, 2)}, options, {.loss = nn::mse_loss});
    if (!state.empty()) trainer.load_state(state);
    Figures mine;
    while (trainer.steps() < steps) {
      const StepReport report = trainer.step();
      EXPECT_EQ(report.accuracy, 0);
      if (report.step == 1) mine.first_loss = report.loss;
      mine.last_loss = report.loss;
    }
    const EvaluationReport report = trainer.evaluate();
    EXPECT_EQ(report.images, 10);
    EXPECT_EQ(report.correct, 0);
    mine.test_loss = report.loss;
    const Safetensors rows = trainer.logits();
    if (!to.empty()) trainer.save_state(to);
    if (peers.rank() != 0) return;
    mine.weights = weights_of(network);
    const auto values = [&](const char* name) {
      const auto span = rows.tensors.at(name).span<float>();
      return std::vector<float>(span.begin(), span.end());
    };
    mine.outputs = values("logits");
    mine.targets = values("targets");
    figures = mine;
  });
  return figures;
}

TEST(Regression, LearnsWithTheSameBitsOnOneTwoAndFourRanks) {
  const Figures one = regress(1, options_of_points(), 80);
  EXPECT_LT(one.last_loss, one.first_loss / 4);
  EXPECT_EQ(regress(2, options_of_points(), 80), one);
  EXPECT_EQ(regress(4, options_of_points(), 80), one);
  double sum = 0;
  ASSERT_EQ(one.outputs.size(), 10U);
  for (size_t i = 0; i < 10; ++i) sum += std::pow(one.outputs[i] - one.targets[i], 2);
  EXPECT_NEAR(one.test_loss, sum / 10, 1e-6);
}

TEST(Regression, TheTestLossDoesNotDependOnThreadsAndWorkers) {
  TrainerOptions options = options_of_points();
  const Figures one = regress(1, options, 5);
  options.rank = {.threads = 2, .workers = 2};
  EXPECT_EQ(regress(2, options, 5), one);
}

TEST(Regression, SixteenBitsClippingAndAveragesWork) {
  for (const int level : {1, 2, 3}) {
    TrainerOptions options = options_of_points();
    options.precision = {.level = level, .half = Dtype::kBF16};
    options.optimizer.clip_grad_norm = 0.5;
    options.optimizer.ema = 0.9;
    const Figures one = regress(1, options, 40);
    EXPECT_LT(one.last_loss, one.first_loss) << level;
    EXPECT_EQ(regress(2, options, 40), one) << level;
  }
}

TEST(Regression, GoesOnFromAStateOnAnotherNumberOfRanks) {
  const TempDir dir;
  regress(2, options_of_points(), 10, {}, dir / "state");
  Figures rest = regress(1, options_of_points(), 20, dir / "state");
  const Figures all = regress(1, options_of_points(), 20);
  rest.first_loss = all.first_loss;
  EXPECT_EQ(rest, all);
}

// Two classes of points by their own cross-entropy, which is the library's.
TEST(Regression, ALossOfLabelsHasTheBitsOfTheLibrarys) {
  const auto train = [](const TrainerHooks& hooks) {
    comm::SingleCommunicator alone;
    Tensor x = Tensor::empty({32, 2}, Dtype::kF32);
    Tensor labels = Tensor::zeros({32}, Dtype::kI32);
    Mt19937 rng(3);
    rng.uniform(x.span<float>(), -1, 1);
    for (int64_t i = 0; i < 32; ++i) {
      labels.data<int32_t>()[i] = x.data<float>()[2 * i] > 0 ? 1 : 0;
    }
    const auto set = std::make_shared<data::TensorDataset>("halves", x, labels);
    Mlp network(nn::Init{rng}, 2);
    Trainer trainer(alone, network, {set, set}, short_options(), hooks);
    trainer.run();
    EXPECT_GT(trainer.evaluate().loss, 0);
    return weights_of(network);
  };
  EXPECT_EQ(train({.loss =
                       [](const Var& output, const Tensor& labels) {
                         return nn::softmax_cross_entropy(output, labels).loss;
                       }}),
            train({}));
}

std::string refused(const TrainerOptions& options,
                    const TrainerHooks& hooks,
                    std::shared_ptr<const data::Dataset> test = points(10, 2)) {
  return error_of<UsageError>([&] {
    comm::SingleCommunicator alone;
    Mt19937 rng(1);
    Mlp network(nn::Init{rng});
    Trainer trainer(alone, network, {points(64, 1), std::move(test)}, options, hooks);
    trainer.step();
  });
}

TEST(Regression, WhatDoesNotFitIsRefusedByName) {
  const TrainerHooks mse{.loss = nn::mse_loss};
  TrainerOptions options = options_of_points();
  EXPECT_THAT(refused(options, {}), HasSubstr("points has targets instead of labels"));
  EXPECT_THAT(refused(options, mse, data::open_digits().test), HasSubstr("of two kinds"));
  EXPECT_THAT(refused(options, {.loss = [](const Var& x, const Tensor&) { return x; }}),
              HasSubstr("the loss is (16,1) of f32, expected (4) of f32"));
  EXPECT_THAT(refused(options, {.loss = [](const Var&, const Tensor&) { return Var(); }}),
              HasSubstr("the loss is nothing"));
  options.label_smoothing = 0.1;
  EXPECT_THAT(refused(options, mse), HasSubstr("label_smoothing"));
  options = options_of_points();
  options.images.normalize.emplace();
  EXPECT_THAT(refused(options, mse), HasSubstr("images.normalize is for images"));
  options.images = {.augmentation = Augmentation{.pad = 1}};
  EXPECT_THAT(refused(options, mse), HasSubstr("images.augmentation is for images"));
}

TEST(Regression, TargetsOfAnotherShapeAreNamedWithBothShapes) {
  comm::SingleCommunicator alone;
  Mt19937 rng(1);
  Mlp network(nn::Init{rng}, 3);
  Trainer trainer(
      alone, network, {points(64, 1), points(10, 2)}, options_of_points(), {.loss = nn::mse_loss});
  EXPECT_THAT(error_of<ShapeError>([&] { trainer.step(); }),
              HasSubstr("targets: shape (16,1), expected the output's, (16,3)"));
}

}  // namespace
}  // namespace lockstep::testing::regression_test
