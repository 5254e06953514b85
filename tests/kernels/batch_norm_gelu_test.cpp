// Batch norm with GELU in its pass, beside the two ops one after the other.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/elementwise/gelu.h"
#include "kernels/norm/batch_norm.h"
#include "tests/support/batch_norm_step.h"
#include "tests/support/close.h"

namespace lockstep::kernels::batch_norm_gelu_test {
namespace {

using testing::batch_norm_step;
using testing::BatchNormInputs;
using testing::BatchNormStep;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::same_bits;

constexpr BatchNormParams kGelu{.eps = 1e-3F, .activation = Activation::kGelu};
constexpr BatchNormParams kPlain{.eps = kGelu.eps};
const testing::BatchNormBodies kOps = LS_BATCH_NORM_BODIES(kernels);

class BatchNormGelu : public ::testing::TestWithParam<Shape> {};

TEST_P(BatchNormGelu, OnePassHasTheBitsOfTwo) {
  BatchNormInputs x(GetParam());
  const Shards shards = Shards::cut(GetParam()[0], 2, 1);
  Stream stream(Device::kCpu, 2);
  const BatchNormStep got = batch_norm_step(stream, shards, x, kGelu, kOps);

  const Tensor normalized = batch_norm_step(stream, shards, x, kPlain, kOps).out;
  Tensor out = poisoned_tensor(GetParam(), Dtype::kF32);
  gelu_forward(stream, normalized, GeluForm::kErf, out);
  Tensor grad = poisoned_tensor(GetParam(), Dtype::kF32);
  gelu_backward(stream, normalized, x.grad_out, GeluForm::kErf, grad);
  x.grad_out = grad;
  const BatchNormStep want = batch_norm_step(stream, shards, x, kPlain, kOps);
  EXPECT_TRUE(same_bits(got.out, out));
  EXPECT_TRUE(same_bits(got.grad_weight_leaves, want.grad_weight_leaves));
  EXPECT_TRUE(same_bits(got.grad_bias_leaves, want.grad_bias_leaves));
  EXPECT_TRUE(same_bits(got.grad_residual, grad));
  EXPECT_TRUE(same_bits(got.grad_in, want.grad_in));
}

TEST_P(BatchNormGelu, SoHasInference) {
  const BatchNormInputs x(GetParam());
  const Tensor mean = random_tensor({x.channels()}, 5);
  const Tensor var = random_tensor({x.channels()}, 6, 0.5F, 2);
  for (const int threads : {1, 3}) {
    Stream stream(Device::kCpu, threads);
    const auto inference = [&](const BatchNormParams& params) {
      Tensor out = poisoned_tensor(GetParam(), Dtype::kF32);
      const Shards shards = Shards::single(GetParam()[0]);
      batch_norm_inference(stream, shards, {x.in, mean, var, x.weight, x.bias, {}, params, out});
      return out;
    };
    Tensor want = inference(kPlain);
    gelu_forward(stream, want, GeluForm::kErf, want);
    EXPECT_TRUE(same_bits(inference(kGelu), want));
  }
}

// Rows of several pixels, a tile of 32 lanes and its rest, more than a task's elements.
INSTANTIATE_TEST_SUITE_P(Shapes,
                         BatchNormGelu,
                         ::testing::Values(Shape{2, 3},
                                           Shape{7, 100},
                                           Shape{4, 10, 12, 11},
                                           Shape{6, 64, 15, 15},
                                           Shape{2, 33, 3, 3}));

TEST(BatchNormGeluEdges, NanStaysInItsChannel) {
  BatchNormInputs x({2, 4, 5, 5});
  const Shards shards = Shards::single(2);
  Stream stream;
  const BatchNormStep clean = batch_norm_step(stream, shards, x, kGelu, kOps);
  x.in.data<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  const BatchNormStep got = batch_norm_step(stream, shards, x, kGelu, kOps);
  for (int64_t i = 0; i < x.in.numel(); ++i) {
    for (const auto& [values, unspoiled] :
         {std::pair{got.out, clean.out}, {got.grad_in, clean.grad_in}}) {
      const float value = values.data<float>()[i];
      EXPECT_TRUE(i % 4 == 2 ? std::isnan(value) : value == unspoiled.data<float>()[i]) << i;
    }
  }
}

template <class Call>
void expect_refused(Call&& call, const char* message) {
  try {
    call();
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), message);
  }
}

TEST(BatchNormGeluEdges, NoResidualAndNoGate) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const auto f32 = [](const Shape& shape) { return Tensor::zeros(shape, Dtype::kF32); };
  const Tensor in = f32({2, 3}), channel = f32({3}), sums = f32({2, 1, 3});
  Tensor stats = f32({1, 7}), out = f32({2, 3}), row = f32({1, 3}), affine = f32({2, 1, 3});
  expect_refused(
      [&] { batch_norm_forward(stream, shards, {in, stats, channel, channel, in, kGelu, out}); },
      "[batch_norm_forward] required: no residual before GELU, whose slope is found again from in "
      "alone");
  expect_refused(
      [&] {
        batch_norm_inference(
            stream, shards, {in, channel, channel, channel, channel, in, kGelu, out});
      },
      "[batch_norm_inference] required: no residual before GELU, whose slope is found again from "
      "in alone");
  expect_refused(
      [&] {
        batch_norm_shard_forward(
            stream, shards, {in, {}, channel, channel, kGelu, nullptr, stats}, in, out);
      },
      "[batch_norm_shard_forward] required: no residual before GELU, whose slope is found again "
      "from "
      "in alone");
  expect_refused(
      [&] {
        batch_norm_shard_sums(
            stream, shards, {in, in, in, stats, channel, channel, kGelu, &out, row, row});
      },
      "[batch_norm_shard_sums] required: grad_residual and no out, where GELU follows");
  expect_refused(
      [&] {
        batch_norm_shard_sums(
            stream, shards, {in, {}, in, stats, channel, channel, kGelu, nullptr, row, row});
      },
      "[batch_norm_shard_sums] required: grad_residual and no out, where GELU follows");
  expect_refused(
      [&] {
        batch_norm_backward(
            stream, shards, {in, in, stats, row, row, channel, channel, kGelu, out});
      },
      "[batch_norm_backward] required: no GELU, since grad_out is what batch_norm_shard_sums "
      "wrote");
  expect_refused(
      [&] {
        batch_norm_shard_affine(
            stream, shards, {in, sums, channel, channel, kGelu, nullptr, stats}, affine);
      },
      "[batch_norm_shard_affine] required: no GELU, since convolutions that normalize what they "
      "read "
      "apply "
      "ReLU alone");
}

TEST(BatchNormGeluEdges, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const auto dry = [](const Shape& shape) {
    return Tensor::empty(shape, Dtype::kF32, Device::kDry);
  };
  const Shards shards = Shards::single(2);
  const Tensor in = dry({2, 3, 4, 5}), channel = dry({3}), none;
  Tensor leaf = dry({1, 7}), out = dry({2, 3, 4, 5}), row = dry({1, 3});
  batch_norm_forward(stream, shards, {in, leaf, channel, channel, none, kGelu, out});
  batch_norm_shard_sums(
      stream, shards, {in, none, in, leaf, channel, channel, kGelu, &out, row, row});
  batch_norm_backward(stream, shards, {in, in, leaf, row, row, channel, channel, kPlain, out});
  const struct {
    int64_t bytes, unfused_bytes, flops;
  } want[] = {{960, 1920, 120 * 49}, {1440, 2400, 120 * 55}, {1440, 1440, 120 * 5}};
  ASSERT_EQ(stream.ledger().size(), std::size(want));
  for (size_t i = 0; i < std::size(want); ++i) {
    const LedgerEntry& entry = stream.ledger()[i];
    EXPECT_EQ(entry.bytes, want[i].bytes) << entry.op;
    EXPECT_EQ(entry.unfused_bytes, want[i].unfused_bytes) << entry.op;
    EXPECT_EQ(entry.flops, want[i].flops) << entry.op;
  }
}

}  // namespace
}  // namespace lockstep::kernels::batch_norm_gelu_test
