#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "nn/functional.h"
#include "nn/layers.h"

namespace lockstep::nn::mse_loss_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Six samples of two values each, in three shards.
class MseLoss : public ::testing::Test {
 protected:
  MseLoss() { rng_.uniform(x_.span<float>(), -1, 1); }

  Var output() { return layer_.forward(Var(x_, make_batch(stream_, Shards::cut(6, 3, 1)))); }
  double loss(const Tensor& targets) {
    double sum = 0;
    for (const float leaf : mse_loss(output(), targets).value().span<float>()) sum += leaf;
    return sum;
  }

  Stream stream_{Device::kCpu, 2};
  Mt19937 rng_{1};
  Linear layer_{Init{rng_}, 4, 2};
  Tensor x_ = Tensor::empty({6, 4}, Dtype::kF32);
};

TEST_F(MseLoss, LeavesAreTheShardsPartsOfTheMean) {
  Tensor targets = Tensor::zeros({3}, Dtype::kF32);
  Tensor values = Tensor::zeros({3, 1}, Dtype::kF32);
  for (int i = 0; i < 3; ++i) values.data<float>()[i] = static_cast<float>(i + 1);
  const Shards shards{.offsets = {0, 1, 3}, .total = 3, .step_images = 4};
  const Var x(values, make_batch(stream_, shards));
  EXPECT_THAT(mse_loss(x, targets).value().span<float>(), ElementsAre(0.25F, 3.25F));
}

TEST_F(MseLoss, GradientIsTheFiniteDifferences) {
  Tensor targets = Tensor::empty({6, 2}, Dtype::kF32);
  rng_.uniform(targets.span<float>(), -2, 2);
  mse_loss(output(), targets).backward();
  Var weight = layer_.parameters().front();
  for (int64_t i = 0; i < weight.value().numel(); ++i) {
    double gradient = 0;
    for (int64_t k = 0; k < 3; ++k) {
      gradient += weight.grad().data<float>()[k * weight.value().numel() + i];
    }
    Tensor values = weight.value();
    float& value = values.data<float>()[i];
    constexpr float kStep = 1.0F / 64;
    const float before = value;
    value = before + kStep;
    const double above = loss(targets);
    value = before - kStep;
    const double below = loss(targets);
    value = before;
    EXPECT_NEAR(gradient, (above - below) / (2 * kStep), 1e-4) << i;
  }
}

TEST_F(MseLoss, TargetsThatDoNotFitAreNamed) {
  EXPECT_THAT([&] { loss(Tensor::zeros({6, 3}, Dtype::kF32)); },
              ThrowsMessage<ShapeError>(HasSubstr("targets: shape (6,3), expected the output's, "
                                                  "(6,2)")));
  EXPECT_THAT([&] { loss(Tensor::zeros({6}, Dtype::kI32)); },
              ThrowsMessage<DtypeError>(HasSubstr("targets: dtype i32, expected f32")));
}

}  // namespace
}  // namespace lockstep::nn::mse_loss_test
