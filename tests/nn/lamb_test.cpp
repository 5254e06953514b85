#include <fmt/core.h>
#include <gtest/gtest.h>

#include "nn/grad_clipper.h"
#include "nn/optimizer.h"
#include "tests/support/close.h"
#include "tests/support/golden.h"
#include "tests/support/optimizers.h"
#include "tests/support/random_tensor.h"
#include "tests/support/scaled_gradients.h"

namespace lockstep::nn::lamb_test {
namespace {

using testing::close;
using testing::parameter;
using testing::random_tensor;
using testing::same_bits;

constexpr const char* kNames[] = {"matrix", "conv", "zeros", "bias"};

TEST(Lamb, TenStepsAreTimms) {
  for (const auto& golden : testing::golden_cases("lamb")) {
    SCOPED_TRACE(golden.name());
    std::vector<NamedParameter> all;
    for (const char* name : kNames) {
      all.push_back(parameter(name, golden.tensor(fmt::format("{}.before", name))));
    }
    Lamb optimizer({{.parameters = {all.begin(), all.begin() + 3},
                     .weight_decay = golden.number("weight_decay")},
                    {.parameters = {all[3]}}});
    Stream stream;
    std::optional<GradClipper> clipper;
    const double limit = golden.number("max_grad_norm");
    if (limit > 0) clipper.emplace(stream, optimizer, static_cast<float>(limit));
    for (int step = 0; step < 10; ++step) {
      for (NamedParameter& each : all) {
        each.var.set_grad(golden.tensor(fmt::format("{}.grad{}", each.name, step)));
      }
      optimizer.set_lr(golden.number(fmt::format("lr/{}", step)));
      if (clipper) clipper->clip();
      optimizer.step(stream);
      for (const NamedParameter& each : all) {
        const Tensor want = golden.tensor(fmt::format("{}.after{}", each.name, step));
        EXPECT_TRUE(close(each.var.value().span<float>(), want.span<float>(), {1e-5, 1e-6}))
            << each.name << " after step " << step;
      }
    }
  }
}

TEST(Lamb, FollowsALossScaleAndSkipsSteps) {
  testing::expect_follows_loss_scale(testing::make_lamb);
}

TEST(Lamb, TheRateOfAGroupIsItsOwnAndFrozenParametersStay) {
  std::vector<NamedParameter> all = {parameter("w", random_tensor({3, 4}, 1)),
                                     parameter("twice", random_tensor({3, 4}, 1)),
                                     parameter("frozen", random_tensor({3, 4}, 1))};
  const Tensor before = random_tensor({3, 4}, 1);
  Lamb optimizer({{.parameters = {all[2], all[0]}, .weight_decay = 0.1},
                  {.parameters = {all[1]}, .weight_decay = 0.1, .lr_factor = 2}});
  optimizer.set_lr(0.125);
  for (size_t i = 0; i < 2; ++i) all[i].var.set_grad(random_tensor({3, 4}, 7));
  Stream stream;
  optimizer.step(stream);
  EXPECT_TRUE(same_bits(all[2].var.value(), before));
  for (size_t i = 0; i < 12; ++i) {
    const float at = before.span<const float>()[i];
    EXPECT_NEAR(all[1].var.value().span<float>()[i] - at,
                2 * (all[0].var.value().span<float>()[i] - at),
                1e-6);
  }
}

}  // namespace
}  // namespace lockstep::nn::lamb_test
