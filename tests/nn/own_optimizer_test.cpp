// Optimizers of a library's user, under the library's clipping, loss scaling and averages.
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "nn/autocast.h"
#include "nn/functional.h"
#include "nn/grad_clipper.h"
#include "nn/grad_scaler.h"
#include "tests/support/close.h"
#include "tests/support/optimizers.h"

namespace lockstep::nn::own_optimizer_test {
namespace {

using testing::random_tensor;
using testing::same_bits;
using testing::some_parameters;

constexpr float kMaxNorm = 0.5F;

// Reads values and gradients, and knows of nothing else.
class PlainSgd : public Optimizer {
 public:
  explicit PlainSgd(std::vector<NamedParameter> parameters)
      : Optimizer(without_bias_decay(std::move(parameters), 0)) {}

  void step(Stream&) override {
    for (const ParameterGroup& group : groups()) {
      for (const NamedParameter& parameter : group.parameters) {
        if (!parameter.var.grad().defined()) continue;
        Tensor value = parameter.var.value();
        const std::span<const float> gradient = parameter.var.grad().span<float>();
        for (size_t i = 0; i < gradient.size(); ++i) value.span<float>()[i] -= lr_ * gradient[i];
      }
    }
  }
  void set_lr(double lr) override { lr_ = static_cast<float>(lr); }
  std::vector<StateEntry> state() const override { return {}; }

 private:
  float lr_ = 0.1F;
};

// Hands everything to another optimizer, but does not say that it applies the control.
class Wrapper : public Optimizer {
 public:
  explicit Wrapper(std::unique_ptr<Optimizer> inner)
      : Optimizer(inner->groups()), inner_(std::move(inner)) {}

  void begin(Stream& stream) override { inner_->begin(stream); }
  void step(Stream& stream) override { inner_->step(stream); }
  void set_lr(double lr) override { inner_->set_lr(lr); }
  void follow(const kernels::StepControl& control) override {
    Optimizer::follow(control);
    inner_->follow(control);
  }
  void set_applied_steps(int64_t steps) override { inner_->set_applied_steps(steps); }
  std::vector<StateEntry> state() const override { return inner_->state(); }

 private:
  std::unique_ptr<Optimizer> inner_;
};

class OwnAdam : public Adam {
 public:
  using Adam::Adam;
  void step(Stream& stream) override { Adam::step(stream); }
};

std::unique_ptr<Optimizer> make_library_sgd(std::vector<NamedParameter> parameters) {
  return std::make_unique<Sgd>(without_bias_decay(std::move(parameters), 0),
                               kernels::SgdParams{.lr = 0.1F});
}
std::unique_ptr<Optimizer> make_plain_sgd(std::vector<NamedParameter> parameters) {
  return std::make_unique<PlainSgd>(std::move(parameters));
}

struct Training {
  bool scales = true, clips = true, checks_first = false;
};

// The parameters and the state after some steps, two of which overflow.
std::vector<Tensor> trained(const testing::MakeOptimizer& make, const Training& how) {
  Stream stream;
  std::vector<NamedParameter> parameters = some_parameters();
  const auto optimizer = make(parameters);
  std::optional<GradScaler> scaler;
  if (how.scales) scaler.emplace(stream, *optimizer, kernels::LossScaleRule{});
  const std::vector<double> lrs = {0.1, 0.05, 0.025};
  if (how.scales) scaler->set_learning_rates(lrs);
  std::optional<GradClipper> clipper;
  if (how.clips) clipper.emplace(stream, *optimizer, kMaxNorm);
  optimizer->begin(stream);
  for (uint64_t step = 0; step < 9; ++step) {
    optimizer->zero_grad();
    const float scale = how.scales ? scaler->seed(1).span<float>()[0] : 1;
    for (size_t i = 0; i < parameters.size(); ++i) {
      Tensor gradient = random_tensor(parameters[i].var.shape(), 100 * step + i);
      for (float& value : gradient.span<float>()) value *= scale;
      const bool overflows = how.scales && (step == 0 || step == 4);
      if (overflows && i == 1) gradient.span<float>()[0] = std::numeric_limits<float>::infinity();
      parameters[i].var.set_grad(gradient);
    }
    if (how.scales && how.checks_first) scaler->check();
    if (how.clips) clipper->clip();
    if (how.scales && !how.checks_first) scaler->check();
    optimizer->step(stream);
    if (how.scales) scaler->update();
  }
  if (how.scales) optimizer->set_applied_steps(scaler->read().applied);
  std::vector<Tensor> result;
  for (const NamedParameter& parameter : parameters) result.push_back(parameter.var.value());
  for (const StateEntry& entry : optimizer->state()) result.push_back(entry.tensor);
  return result;
}

// Scales are powers of two, so the order of multiplications changes no bit.
void expect_same(const testing::MakeOptimizer& own,
                 const testing::MakeOptimizer& library,
                 const Training& how) {
  const std::vector<Tensor> got = trained(own, how);
  const std::vector<Tensor> want = trained(library, how);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same_bits(got[i], want[i])) << i;
}

TEST(OwnOptimizer, ReadsGradientsThatAreClippedAndUnscaled) {
  for (const Training& how : {Training{.scales = false},
                              Training{.clips = false},
                              Training{},
                              Training{.checks_first = true}}) {
    expect_same(make_plain_sgd, make_library_sgd, how);
  }
}

TEST(OwnOptimizer, IsClippedAndUnscaledWithinTheLibrarysWrappers) {
  for (const LookaheadVariant variant :
       {LookaheadVariant::kAlphadl, LookaheadVariant::kPaper, LookaheadVariant::kAirbench}) {
    expect_same(testing::with_ema(testing::with_lookahead(make_plain_sgd, variant)),
                testing::with_ema(testing::with_lookahead(make_library_sgd, variant)),
                {});
  }
}

TEST(OwnOptimizer, IsNotSteppedByAWrapperInASkippedStep) {
  struct Counting : PlainSgd {
    Counting(std::vector<NamedParameter> parameters, int& counted)
        : PlainSgd(std::move(parameters)), steps(counted) {}
    void step(Stream& stream) override {
      ++steps;
      PlainSgd::step(stream);
    }
    int& steps;
  };
  int steps = 0;
  trained(testing::with_ema([&](std::vector<NamedParameter> parameters) {
            return std::make_unique<Counting>(std::move(parameters), steps);
          }),
          {});
  EXPECT_EQ(steps, 7) << "two of nine are skipped";
}

TEST(OwnOptimizer, MayBeDerivedFromTheLibrarys) {
  expect_same(
      [](std::vector<NamedParameter> parameters) {
        return std::make_unique<OwnAdam>(std::move(parameters), kernels::AdamParams{});
      },
      [](std::vector<NamedParameter> parameters) {
        return std::make_unique<Adam>(std::move(parameters), kernels::AdamParams{});
      },
      {.clips = false});
}

class Wrapped : public ::testing::TestWithParam<testing::NamedOptimizer> {};

TEST_P(Wrapped, OptimizersOfTheLibraryAreScaledOnce) {
  expect_same(
      [](std::vector<NamedParameter> parameters) {
        return std::make_unique<Wrapper>(GetParam().make(std::move(parameters)));
      },
      GetParam().make,
      {.clips = false});
}
INSTANTIATE_TEST_SUITE_P(Optimizers,
                         Wrapped,
                         ::testing::ValuesIn(testing::kOptimizers),
                         ::testing::PrintToStringParamName());

TEST(OwnOptimizer, AStepWithoutItsCheckIsRefused) {
  Stream stream;
  PlainSgd optimizer(some_parameters());
  GradScaler scaler(stream, optimizer, {});
  optimizer.step(stream);
  EXPECT_THROW(scaler.update(), UsageError);
}

// The next forward pass reads the new value.
TEST(OwnOptimizer, NeedNotWriteThe16BitCopies) {
  Stream stream;
  std::vector<NamedParameter> parameters = {
      testing::parameter("fc.weight", random_tensor({4, 3}, 1))};
  add_copies(parameters, Dtype::kBF16);
  refresh_copies(stream, parameters);
  PlainSgd optimizer(parameters);
  Tensor one_hot = Tensor::zeros({1, 3}, Dtype::kBF16);
  one_hot.span<BFloat16>()[0] = BFloat16(1.0F);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    parameters[0].var.set_grad(random_tensor({4, 3}, 7));
    Batch batch;
    batch.stream = &stream;
    batch.shards = Shards::single(1);
    const Var out =
        linear(Var(one_hot, std::make_shared<const Batch>(batch)), parameters[0].var, {});
    for (size_t row = 0; row < 4; ++row) {
      const float weight = parameters[0].var.value().span<float>()[3 * row];
      EXPECT_EQ(static_cast<float>(out.value().span<BFloat16>()[row]),
                static_cast<float>(BFloat16(weight)));
    }
    optimizer.step(stream);
  }
}

}  // namespace
}  // namespace lockstep::nn::own_optimizer_test
