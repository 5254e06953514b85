#include "nn/grad_scaler.h"

#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/grad_clipper.h"
#include "tests/support/close.h"
#include "tests/support/optimizers.h"

namespace lockstep::nn::grad_scaler_test {
namespace {

using testing::random_tensor;
using testing::same_bits;
using testing::some_parameters;

constexpr int kSteps = 23;
const std::set<int> kBadSteps = {0, 1, 6, 13, 14};
constexpr kernels::LossScaleRule kRule = {.growth_interval = 3};

double lr_of(int applied) {
  return 0.1 / (applied + 1);
}

// Some parameters, and an optimizer of theirs.
struct Model {
  explicit Model(const testing::MakeOptimizer& make)
      : parameters(some_parameters()), optimizer(make(parameters)) {}

  void set_gradients(int step, float scale) {
    optimizer->zero_grad();
    for (size_t i = 0; i < parameters.size(); ++i) {
      Tensor gradient =
          random_tensor(parameters[i].var.shape(), 100 * static_cast<uint64_t>(step) + i);
      for (float& value : gradient.span<float>()) value *= scale;
      parameters[i].var.set_grad(gradient);
    }
  }

  // The last element of the last gradient.
  void spoil(float value) {
    Tensor gradient = parameters.back().var.grad();
    gradient.span<float>().back() = value;
  }

  std::vector<NamedParameter> parameters;
  std::unique_ptr<Optimizer> optimizer;
};

void expect_same(const Model& got, const Model& want) {
  for (size_t i = 0; i < want.parameters.size(); ++i) {
    EXPECT_TRUE(same_bits(got.parameters[i].var.value(), want.parameters[i].var.value()))
        << want.parameters[i].name;
  }
  const std::vector<StateEntry> got_state = got.optimizer->state();
  const std::vector<StateEntry> want_state = want.optimizer->state();
  ASSERT_EQ(got_state.size(), want_state.size());
  for (size_t i = 0; i < want_state.size(); ++i) {
    EXPECT_TRUE(same_bits(got_state[i].tensor, want_state[i].tensor)) << want_state[i].name;
  }
}

std::vector<double> learning_rates() {
  std::vector<double> lrs;
  for (int i = 0; i < kSteps; ++i) lrs.push_back(lr_of(i));
  return lrs;
}

class ScaledOptimizer : public ::testing::TestWithParam<testing::NamedOptimizer> {
 protected:
  // Steps [first, last) of a training whose bad steps overflow.
  void train(Model& model, GradScaler& scaler, int first, int last) {
    for (int step = first; step < last; ++step) {
      model.set_gradients(step, scaler.seed(1).span<float>()[0]);
      if (kBadSteps.contains(step)) model.spoil(std::numeric_limits<float>::infinity());
      scaler.check();
      model.optimizer->step(stream_);
      scaler.update();
    }
    model.optimizer->set_applied_steps(scaler.read().applied);
  }

  // The good steps alone, unscaled.
  void train_unscaled(Model& model) {
    int applied = 0;
    for (int step = 0; step < kSteps; ++step) {
      if (kBadSteps.contains(step)) continue;
      model.set_gradients(step, 1);
      model.optimizer->set_lr(lr_of(applied++));
      model.optimizer->step(stream_);
    }
  }

  Stream stream_{Device::kCpu, 2};
};

// Scales are powers of two, so that no bit is lost.
TEST_P(ScaledOptimizer, IsTheUnscaledOneWithoutItsBadSteps) {
  Model scaled(GetParam().make);
  GradScaler scaler(stream_, *scaled.optimizer, kRule);
  scaler.set_learning_rates(learning_rates());
  train(scaled, scaler, 0, kSteps);
  Model unscaled(GetParam().make);
  train_unscaled(unscaled);
  expect_same(scaled, unscaled);
  const kernels::LossScaleState state = scaler.read();
  EXPECT_EQ(state.applied, kSteps - std::ssize(kBadSteps));
  EXPECT_EQ(state.skipped, std::ssize(kBadSteps));
}

TEST_P(ScaledOptimizer, ContinuesBitForBit) {
  Model whole(GetParam().make);
  GradScaler scaler(stream_, *whole.optimizer, kRule);
  scaler.set_learning_rates(learning_rates());
  train(whole, scaler, 0, kSteps);
  for (const int middle : {1, 7, 14}) {  // nothing applied yet; between; amid skips
    Model first(GetParam().make);
    GradScaler before(stream_, *first.optimizer, kRule);
    before.set_learning_rates(learning_rates());
    train(first, before, 0, middle);
    Model resumed(GetParam().make);
    for (size_t i = 0; i < first.parameters.size(); ++i) {
      testing::copy_bytes(first.parameters[i].var.value(), resumed.parameters[i].var.value());
    }
    const std::vector<StateEntry> saved = first.optimizer->state();
    const std::vector<StateEntry> fresh = resumed.optimizer->state();
    for (size_t i = 0; i < saved.size(); ++i) testing::copy_bytes(saved[i].tensor, fresh[i].tensor);
    GradScaler after(stream_, *resumed.optimizer, kRule);
    after.set_learning_rates(learning_rates());
    after.restore(before.read());
    train(resumed, after, middle, kSteps);
    expect_same(resumed, whole);
  }
}
INSTANTIATE_TEST_SUITE_P(Optimizers,
                         ScaledOptimizer,
                         ::testing::ValuesIn(testing::kOptimizers),
                         ::testing::PrintToStringParamName());

TEST(GradScaler, SeedsEveryLeafWithTheScale) {
  Model model(testing::make_sgd);
  Stream stream;
  const GradScaler scaler(stream, *model.optimizer, {}, {.scale = 1024});
  EXPECT_THAT(scaler.seed(3).span<float>(), ::testing::Each(1024));
  EXPECT_THAT(scaler.seed(0).span<float>(), ::testing::IsEmpty());
}

TEST(GradScaler, FindsEveryKindOfBadGradient) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Model model(testing::make_sgd);
  Stream stream;
  GradScaler scaler(stream, *model.optimizer, {});
  for (const float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
    const int64_t skipped = scaler.read().skipped;
    model.set_gradients(0, 1);
    model.spoil(bad);
    scaler.check();
    scaler.update();
    EXPECT_EQ(scaler.read().skipped, skipped + 1) << bad;
  }
}

// By hand: (3, 4) has the norm 5.
float clipped(float max_norm, float scale) {
  Tensor value = Tensor::zeros({2}, Dtype::kF32);
  NamedParameter parameter = testing::parameter("p", value);
  Stream stream;
  Sgd optimizer({parameter}, {.lr = 1});
  GradClipper clipper(stream, optimizer, max_norm);
  std::unique_ptr<GradScaler> scaler;
  if (scale != 1) {
    const kernels::LossScaleState initial = {.scale = scale};
    scaler = std::make_unique<GradScaler>(stream, optimizer, kernels::LossScaleRule(), initial);
    scaler->set_learning_rates(std::vector<double>{1});
  }
  Tensor gradient = Tensor::empty({2}, Dtype::kF32);
  gradient.span<float>()[0] = 3 * scale;
  gradient.span<float>()[1] = 4 * scale;
  parameter.var.set_grad(gradient);
  clipper.clip();
  optimizer.step(stream);
  return -value.span<float>()[1];
}

// The weight after a step with gradient 4, lr 1; `use` sees the optimizer first.
template <class Use>
float stepped(const Use& use) {
  Tensor value = Tensor::zeros({1}, Dtype::kF32);
  NamedParameter parameter = testing::parameter("p", value);
  Stream stream;
  Sgd optimizer({parameter}, {.lr = 1});
  Tensor gradient = Tensor::empty({1}, Dtype::kF32);
  gradient.span<float>()[0] = 4;
  parameter.var.set_grad(gradient);
  use(stream, optimizer);
  return value.span<float>()[0];
}

TEST(GradClipper, ActsWhileItLivesAlone) {
  EXPECT_EQ(stepped([](Stream& stream, Optimizer& optimizer) {
              {
                GradClipper(stream, optimizer, 1).clip();
              }
              optimizer.step(stream);
            }),
            -4);
  EXPECT_EQ(stepped([](Stream& stream, Optimizer& optimizer) {
              const GradClipper not_yet_called(stream, optimizer, 1);
              optimizer.step(stream);
            }),
            -4);
}

TEST(GradScaler, ActsWhileItLivesAlone) {
  EXPECT_EQ(stepped([](Stream& stream, Optimizer& optimizer) {
              {
                GradScaler scaler(stream, optimizer, kernels::LossScaleRule(), {.scale = 64});
                scaler.set_learning_rates(std::vector<double>{0.5});
              }
              optimizer.step(stream);
            }),
            -4);
}

TEST(GradClipper, ShrinksTheGradientToTheNorm) {
  EXPECT_FLOAT_EQ(clipped(1, 1), 0.7999998F);
  EXPECT_FLOAT_EQ(clipped(1, 512), 0.7999998F);
  EXPECT_EQ(clipped(5.1F, 1), 4);
  EXPECT_EQ(clipped(5.1F, 512), 4);
}

}  // namespace
}  // namespace lockstep::nn::grad_scaler_test
