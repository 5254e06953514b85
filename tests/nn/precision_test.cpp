// 16-bit activations and weights, and the f32 masters under them.
#include <gtest/gtest.h>

#include "core/allocator.h"
#include "nn/autocast.h"
#include "nn/cifar_resnet.h"
#include "nn/functional.h"
#include "nn/optimizer.h"
#include "tests/support/float_types.h"
#include "tests/support/optimizers.h"

namespace lockstep::nn::precision_test {
namespace {

using testing::random_tensor;
using testing::values_of;

// Of parameters, of what a forward pass keeps for the backward pass, and of scratch memory, where
// a shard is staged in f32.
size_t bytes_in_training(Dtype dtype) {
  const size_t before = cpu_allocator().stats().bytes_in_use;
  Mt19937 rng(1);
  CifarResNet model(Init{rng}, 20);
  Stream stream;
  if (dtype != Dtype::kF32) {
    add_copies(model.named_parameters(), dtype);
    refresh_copies(stream, model.named_parameters());
  }
  const Tensor images = Tensor::zeros({128, 3, 32, 32}, Dtype::kU8);
  const Precision precision{.images = dtype};
  const Var logits = model.forward(
      normalize_image(images, make_batch(stream, Shards::cut(128, 8, 1), true, precision)));
  EXPECT_EQ(logits.dtype(), dtype);
  return cpu_allocator().stats().bytes_in_use - before;
}

TEST(MixedPrecision, O2TakesSixTenthsOfTheMemory) {
  const auto f32 = static_cast<double>(bytes_in_training(Dtype::kF32));
  EXPECT_LE(static_cast<double>(bytes_in_training(Dtype::kF16)), 0.6 * f32);
  EXPECT_LE(static_cast<double>(bytes_in_training(Dtype::kBF16)), 0.6 * f32);
}

// A weight of 1, where f16 has steps of 2^-10 above and 2^-11 below, after 1,000 steps of 1e-4.
struct Weights {
  float value, copy;
};
Weights after_small_steps(bool master) {
  Tensor value = Tensor::empty({1, 1}, Dtype::kF32);
  value.span<float>()[0] = 1;
  NamedParameter parameter = testing::parameter("w", value);
  Stream stream;
  add_copies(std::span(&parameter, 1), Dtype::kF16);
  refresh_copies(stream, std::span(&parameter, 1));
  Sgd optimizer({parameter}, {.lr = 1e-4F});
  Tensor gradient = Tensor::empty({1, 1}, Dtype::kF32);
  gradient.span<float>()[0] = -1;
  for (int i = 0; i < 1000; ++i) {
    parameter.var.set_grad(gradient);
    optimizer.step(stream);
    if (!master) round_values(stream, std::span(&parameter, 1), Dtype::kF16);
  }
  return {value.span<float>()[0], static_cast<float>(values_of(parameter.var.copy()).front())};
}

TEST(MixedPrecision, MastersMoveWhereRoundedWeightsDoNot) {
  const Weights mastered = after_small_steps(true);
  EXPECT_NEAR(mastered.value, 1.1F, 1e-4F);
  EXPECT_NEAR(mastered.copy, 1.1F, 1e-3F);
  const Weights rounded = after_small_steps(false);
  EXPECT_EQ(rounded.value, 1);
  EXPECT_EQ(rounded.copy, 1);
}

TEST(MixedPrecision, AParameterIsReadInTheTypeOfItsInput) {
  NamedParameter parameter = testing::parameter("w", random_tensor({2, 3}, 1));
  EXPECT_EQ(parameter.var.as(Dtype::kF32).bytes(), parameter.var.value().bytes());
  EXPECT_THROW(parameter.var.as(Dtype::kF16), DtypeError);
  add_copies(std::span(&parameter, 1), Dtype::kF16);
  EXPECT_EQ(parameter.var.as(Dtype::kF16).dtype(), Dtype::kF16);
  EXPECT_THROW(parameter.var.as(Dtype::kBF16), DtypeError);
}

// O1: convolutions in 16 bits give 16 bits, batch norm gives f32 again.
TEST(MixedPrecision, AutocastChoosesByOperation) {
  Stream stream;
  const Precision precision{.autocast = Dtype::kF16};
  const Var x(random_tensor({2, 3, 4, 4}, 1),
              make_batch(stream, Shards::single(2), true, precision));
  NamedParameter weight = testing::parameter("w", random_tensor({8, 3, 1, 1}, 2));
  add_copies(std::span(&weight, 1), Dtype::kF16);
  refresh_copies(stream, std::span(&weight, 1));
  const Var y = conv2d(x, weight.var, {}, {});
  EXPECT_EQ(y.dtype(), Dtype::kF16);
  Mt19937 rng(1);
  BatchNorm norm(Init{rng}, 8);
  const Var z = norm.forward(y);
  EXPECT_EQ(z.dtype(), Dtype::kF32);
  EXPECT_EQ(relu(z).dtype(), Dtype::kF32);
}

}  // namespace
}  // namespace lockstep::nn::precision_test
