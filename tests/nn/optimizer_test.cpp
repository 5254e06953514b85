#include "nn/optimizer.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/close.h"
#include "tests/support/golden.h"
#include "tests/support/loss_scale_cases.h"
#include "tests/support/optimizers.h"
#include "tests/support/random_tensor.h"

namespace lockstep::nn::optimizer_test {
namespace {

using testing::close;
using testing::copy_bytes;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using testing::make_sgd;
using testing::parameter;
using testing::random_tensor;
using testing::same_bits;
using testing::some_parameters;
using testing::with_lookahead;

NamedParameter scalar(const std::string& name, float value) {
  Tensor tensor = Tensor::empty({1}, Dtype::kF32);
  *tensor.data<float>() = value;
  return parameter(name, tensor);
}

float value_of(const NamedParameter& parameter) {
  return *parameter.var.value().data<float>();
}

void set_gradient(NamedParameter& parameter, float gradient) {
  Tensor tensor = Tensor::empty({1}, Dtype::kF32);
  *tensor.data<float>() = gradient;
  parameter.var.set_grad(tensor);
}

std::vector<std::string> state_names(const Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const StateEntry& entry : optimizer.state()) names.push_back(entry.name);
  return names;
}

// Twelve steps of size one.
std::vector<float> lookahead_path(LookaheadVariant variant) {
  NamedParameter fast = scalar("p", 0);
  Lookahead optimizer(std::make_unique<Sgd>(std::vector{fast}, kernels::SgdParams{.lr = 1}),
                      {.k = 10, .alpha = 0.5, .variant = variant});
  Stream stream;
  std::vector<float> path;
  for (int i = 0; i < 12; ++i) {
    set_gradient(fast, 1);
    optimizer.step(stream);
    path.push_back(value_of(fast));
  }
  return path;
}

TEST(Lookahead, AlphadlMeetsAfterStep11) {
  EXPECT_THAT(lookahead_path(LookaheadVariant::kAlphadl),
              ElementsAre(-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -6, -7));
}

TEST(Lookahead, PaperMeetsAfterStep10) {
  EXPECT_THAT(lookahead_path(LookaheadVariant::kPaper),
              ElementsAre(-1, -2, -3, -4, -5, -6, -7, -8, -9, -5, -6, -7));
}

TEST(Lookahead, WeightsSetBeforeTheFirstStepAreWhereSlowOnesBegin) {
  NamedParameter fast = scalar("p", 0);
  Lookahead optimizer(std::make_unique<Sgd>(std::vector{fast}, kernels::SgdParams{.lr = 1}),
                      {.k = 2, .variant = LookaheadVariant::kPaper});
  Tensor weights = fast.var.value();
  *weights.data<float>() = 100;
  Stream stream;
  for (int i = 0; i < 2; ++i) {
    set_gradient(fast, 1);
    optimizer.step(stream);
  }
  EXPECT_EQ(value_of(fast), 99);
}

TEST(Lookahead, NeedsAtLeastOneStep) {
  EXPECT_THROW(
      Lookahead(std::make_unique<Sgd>(some_parameters(), kernels::SgdParams{.lr = 1}), {.k = 0}),
      InternalError);
}

// Gradients of step `step`, and one step with them.
void run_step(Optimizer& optimizer, std::vector<NamedParameter>& parameters, uint64_t step) {
  optimizer.zero_grad();
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].var.set_grad(random_tensor(parameters[i].var.shape(), 100 * step + i));
  }
  Stream stream;
  optimizer.set_lr(0.1 / static_cast<double>(step + 1));
  optimizer.step(stream);
}

// mu is 2/11 and 3/12 in the first two steps, then 0.25.
TEST(Ema, FollowsParametersAndBuffers) {
  NamedParameter fast = scalar("p", 0);
  Tensor buffer = Tensor::zeros({1}, Dtype::kF32);
  Ema optimizer(std::make_unique<Sgd>(std::vector{fast}, kernels::SgdParams{.lr = 1}),
                {{.name = "b", .tensor = buffer, .file_shape = {1}}},
                0.25);
  EXPECT_THAT(state_names(optimizer), ElementsAre("p.ema", "b.ema", "ema.step"));
  std::vector<StateEntry> averages = optimizer.state();
  Stream stream;
  float want = 0;
  for (int step = 1; step <= 4; ++step) {
    set_gradient(fast, -1);
    *buffer.data<float>() = static_cast<float>(2 * step);
    optimizer.step(stream);
    const float mu = step == 1 ? 2.0F / 11 : 0.25F;
    want = mu * want + (1 - mu) * static_cast<float>(step);
    EXPECT_FLOAT_EQ(*averages[0].tensor.data<float>(), want);
    if (step == 1) *averages[1].tensor.data<float>() = 2 * want;  // it began at 2
    EXPECT_FLOAT_EQ(*averages[1].tensor.data<float>(), 2 * want);
  }
  fast.var.set_copy(Tensor::zeros({1}, Dtype::kBF16));
  const std::vector<Tensor> before = optimizer.put_into_model(stream);
  EXPECT_FLOAT_EQ(value_of(fast), want);
  EXPECT_NEAR(static_cast<float>(*fast.var.copy().data<BFloat16>()), want, 0.01);
  EXPECT_FLOAT_EQ(*buffer.data<float>(), 2 * want);
  optimizer.put_back(stream, before);
  EXPECT_EQ(value_of(fast), 4);
  EXPECT_EQ(static_cast<float>(*fast.var.copy().data<BFloat16>()), 4);
  EXPECT_EQ(*buffer.data<float>(), 8);
  EXPECT_FLOAT_EQ(*averages[0].tensor.data<float>(), want);
}

class ResumedOptimizer : public ::testing::TestWithParam<testing::NamedOptimizer> {};

TEST_P(ResumedOptimizer, ContinuesBitForBit) {
  std::vector<NamedParameter> uninterrupted = some_parameters();
  const auto whole = GetParam().make(uninterrupted);
  std::vector<NamedParameter> first_part = some_parameters();
  const auto before = GetParam().make(first_part);
  for (uint64_t step = 0; step < 17; ++step) {
    run_step(*whole, uninterrupted, step);
    run_step(*before, first_part, step);
  }

  std::vector<NamedParameter> resumed = some_parameters();
  const auto after = GetParam().make(resumed);
  for (size_t i = 0; i < resumed.size(); ++i) {
    copy_bytes(first_part[i].var.value(), resumed[i].var.value());
  }
  ASSERT_EQ(state_names(*after), state_names(*before));
  const std::vector<StateEntry> saved = before->state();
  const std::vector<StateEntry> empty = after->state();
  for (size_t i = 0; i < saved.size(); ++i) {
    EXPECT_EQ(saved[i].file_shape.numel(), saved[i].tensor.numel()) << saved[i].name;
    copy_bytes(saved[i].tensor, empty[i].tensor);
  }

  for (uint64_t step = 17; step < 40; ++step) {
    run_step(*whole, uninterrupted, step);
    run_step(*after, resumed, step);
  }
  for (size_t i = 0; i < resumed.size(); ++i) {
    EXPECT_TRUE(same_bits(resumed[i].var.value(), uninterrupted[i].var.value()));
  }
}
INSTANTIATE_TEST_SUITE_P(Optimizers,
                         ResumedOptimizer,
                         ::testing::ValuesIn(testing::kOptimizers),
                         ::testing::PrintToStringParamName());

TEST(Optimizer, StateIsNamedAfterParameters) {
  EXPECT_THAT(
      state_names(*make_sgd(some_parameters())),
      ElementsAre(
          "conv.weight.momentum_buffer", "fc.weight.momentum_buffer", "conv.bias.momentum_buffer"));
  EXPECT_THAT(state_names(Sgd(some_parameters(), {.lr = 1})), ElementsAre());
  EXPECT_THAT(state_names(Adam({scalar("p", 0)}, {})),
              ElementsAre("p.exp_avg", "p.exp_avg_sq", "adam.step"));
  const auto adam = [](std::vector<NamedParameter> parameters) {
    return std::make_unique<Adam>(std::move(parameters), kernels::AdamParams{});
  };
  EXPECT_THAT(state_names(*with_lookahead(adam, LookaheadVariant::kAlphadl)({scalar("p", 0)})),
              ElementsAre("p.exp_avg", "p.exp_avg_sq", "adam.step", "p.slow", "lookahead.counter"));
}

TEST(Optimizer, ZeroGradForgetsEveryGradient) {
  std::vector<NamedParameter> parameters = some_parameters();
  const auto optimizer = with_lookahead(make_sgd, LookaheadVariant::kPaper)(parameters);
  run_step(*optimizer, parameters, 0);
  optimizer->zero_grad();
  for (const NamedParameter& each : parameters) EXPECT_FALSE(each.var.grad().defined());
}

TEST(ParameterGroups, BiasesAndBatchNormsAreNotDecayed) {
  std::vector<NamedParameter> parameters = {parameter("bn.weight", Tensor::zeros({4}, Dtype::kF32)),
                                            parameter("fc.weight", random_tensor({2, 2}, 1)),
                                            parameter("fc.bias", Tensor::zeros({2}, Dtype::kF32))};
  const std::vector<ParameterGroup> groups = without_bias_decay(parameters, 0.1);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].weight_decay, 0.1);
  ASSERT_EQ(groups[0].parameters.size(), 1U);
  EXPECT_EQ(groups[0].parameters[0].name, "fc.weight");
  EXPECT_EQ(groups[1].weight_decay, 0);
  ASSERT_EQ(groups[1].parameters.size(), 2U);
  EXPECT_EQ(groups[1].parameters[0].name, "bn.weight");
  EXPECT_EQ(groups[1].parameters[1].name, "fc.bias");
}

// Decay is all that moves a parameter whose gradient is 0.
TEST(ParameterGroups, EachHasItsOwnWeightDecay) {
  const auto decayed = [](auto&& make) {
    std::vector<NamedParameter> parameters = {scalar("a", 1), scalar("b", 1)};
    const auto optimizer =
        make(std::vector<ParameterGroup>{{{parameters[0]}, 0.5}, {{parameters[1]}, 0}});
    for (NamedParameter& each : parameters) set_gradient(each, 0);
    Stream stream;
    optimizer->step(stream);
    return std::vector<float>{value_of(parameters[0]), value_of(parameters[1])};
  };
  EXPECT_THAT(decayed([](std::vector<ParameterGroup> groups) {
                return std::make_unique<Sgd>(std::move(groups),
                                             kernels::SgdParams{.lr = 0.5F, .weight_decay = 9});
              }),
              ElementsAre(0.75F, 1));
  EXPECT_THAT(decayed([](std::vector<ParameterGroup> groups) {
                return std::make_unique<Adam>(
                    std::move(groups),
                    kernels::AdamParams{.lr = 0.5, .weight_decay = 9, .decoupled = true});
              }),
              ElementsAre(0.75F, 1));
}

// With a table of rates too, and where LARC divides by the rate.
TEST(ParameterGroups, EachHasItsOwnRate) {
  const auto moved = [](auto&& make, bool by_table) {
    std::vector<NamedParameter> parameters = {scalar("a", 1), scalar("b", 1)};
    const auto optimizer =
        make(std::vector<ParameterGroup>{{{parameters[0]}, 0, 4}, {{parameters[1]}, 0}});
    for (NamedParameter& each : parameters) set_gradient(each, 1);
    Stream stream;
    optimizer->set_lr(0.125);
    if (by_table) {
      optimizer->set_lr(77);
      const std::vector<double> lrs = {0.125};
      optimizer->follow({.state = testing::loss_scale_state(stream, {.scale = 1}),
                         .lr_table = kernels::lr_table_of(lrs)});
    }
    optimizer->step(stream);
    return std::vector<float>{value_of(parameters[0]), value_of(parameters[1])};
  };
  const auto sgd = [](std::vector<ParameterGroup> groups) {
    return std::make_unique<Sgd>(std::move(groups), kernels::SgdParams{});
  };
  const auto adam = [](std::vector<ParameterGroup> groups) {
    return std::make_unique<Adam>(std::move(groups), kernels::AdamParams{.eps = 0});
  };
  const auto larc = [](std::vector<ParameterGroup> groups) {
    return std::make_unique<Sgd>(
        std::move(groups), kernels::SgdParams{}, LarcParams{.trust_coefficient = 0.25});
  };
  for (const bool by_table : {false, true}) {
    EXPECT_THAT(moved(sgd, by_table), ElementsAre(0.5F, 0.875F));
    EXPECT_THAT(moved(adam, by_table), ElementsAre(FloatEq(0.5F), FloatEq(0.875F)));
    EXPECT_THAT(moved(larc, by_table), ElementsAre(0.75F, 0.875F)) << "at most 0.25";
  }
}

// Weights of length 5, a gradient of length 10: 0.02 * 5 / (10 + 0.1 * 5) / lr of each.
TEST(Larc, StepIsApexs) {
  Tensor start = Tensor::empty({2}, Dtype::kF32);
  Tensor gradient = Tensor::empty({2}, Dtype::kF32);
  start.data<float>()[0] = 3;
  start.data<float>()[1] = 4;
  NamedParameter weights = parameter("w", start);
  gradient.data<float>()[0] = 6;
  gradient.data<float>()[1] = 8;
  weights.var.set_grad(gradient);
  Sgd optimizer({{{weights}, 0.1}}, {.lr = 0.1F}, LarcParams{});
  Stream stream;
  optimizer.step(stream);
  EXPECT_FLOAT_EQ(weights.var.value().data<float>()[0], 2.94F);
  EXPECT_FLOAT_EQ(weights.var.value().data<float>()[1], 3.92F);
}

// Whose buffer is whose does not shift when a parameter before has no gradient.
TEST(Optimizer, ParametersWithoutGradientAreLeftAlone) {
  for (const testing::MakeOptimizer& make : {testing::MakeOptimizer(make_sgd),
                                             testing::MakeOptimizer(testing::make_larc),
                                             testing::MakeOptimizer(testing::make_adam)}) {
    std::vector<NamedParameter> both = {scalar("a", 1), scalar("b", 1)};
    const auto optimizer = make(both);
    std::vector<NamedParameter> alone = {scalar("b", 1)};
    const auto expected = make(alone);
    Stream stream;
    float first = 0;
    for (int step = 0; step < 3; ++step) {
      optimizer->zero_grad();
      if (step == 0) set_gradient(both[0], 5);
      set_gradient(both[1], 2);
      set_gradient(alone[0], 2);
      optimizer->step(stream);
      expected->step(stream);
      if (step == 0) first = value_of(both[0]);
    }
    EXPECT_EQ(value_of(both[0]), first);
    EXPECT_EQ(value_of(both[1]), value_of(alone[0]));
    EXPECT_NE(value_of(both[1]), 1);
  }
}

TEST(Adam, CountsItsStepsAsPyTorchDoes) {
  for (const auto& golden : testing::golden_cases("adam")) {
    SCOPED_TRACE(golden.name());
    NamedParameter only = parameter("p", golden.tensor("param_before"));
    Adam optimizer({only},
                   {.beta1 = golden.number("betas/0"),
                    .beta2 = golden.number("betas/1"),
                    .eps = golden.number("eps"),
                    .weight_decay = golden.number("weight_decay"),
                    .decoupled = golden.number("decoupled") != 0});
    const Tensor grads = golden.tensor("grads");
    const Tensor want = golden.tensor("params");
    Stream stream;
    for (int64_t i = 0; i < grads.shape()[0]; ++i) {
      only.var.set_grad(grads.slice(i, 1).view(only.var.shape()));
      optimizer.set_lr(golden.number("lr/" + std::to_string(i)));
      optimizer.step(stream);
      EXPECT_TRUE(
          close(only.var.value().span<float>(), want.slice(i, 1).span<float>(), {1e-6, 1e-7}));
    }
    EXPECT_EQ(*optimizer.state().back().tensor.data<int64_t>(), grads.shape()[0]);
  }
}

}  // namespace
}  // namespace lockstep::nn::optimizer_test
