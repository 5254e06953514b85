// GELU in the pass of a batch norm, beside GELU after it, in training and evaluation.
#include <gtest/gtest.h>

#include "core/allocator.h"
#include "nn/layers.h"
#include "tests/support/close.h"
#include "tests/support/random_tensor.h"

namespace lockstep::nn::batch_norm_gelu_test {
namespace {

using testing::random_tensor;
using testing::same_bits;

constexpr int64_t kImages = 8, kChannels = 16;
const Shape kShape{kImages, kChannels, 6, 5};

struct Step {
  Tensor out, grad_in, grad_weight, grad_bias, running_mean;
  size_t kept = 0;  // bytes between forward and backward
};

struct Way {
  bool one_pass, forgets;
  int64_t groups;  // of 4 shards
};

Step step_of(const Way& way) {
  Stream stream(Device::kCpu, 2);
  Mt19937 rng(42);
  const Activation activation = way.one_pass ? Activation::kGelu : Activation::kNone;
  BatchNorm norm(Init{rng}, kChannels, {.activation = activation});
  Var x(random_tensor(kShape, 1, -1, 2), make_batch(stream, Shards::cut(kImages, 4, way.groups)));
  x.set_requires_grad(true);
  const size_t before = cpu_allocator().stats().bytes_in_use;
  Step step;
  Var loss;
  {
    Var y = norm.forward(x);
    if (!way.one_pass) y = gelu(y);
    step.out = y.value();
    loss = softmax_cross_entropy(global_avg_pool(y), Tensor::zeros({kImages}, Dtype::kI32)).loss;
    if (way.forgets) y.forget();
  }
  step.kept = cpu_allocator().stats().bytes_in_use - before;
  loss.backward();
  step.grad_in = x.grad();
  step.grad_weight = norm.parameters()[0].grad();
  step.grad_bias = norm.parameters()[1].grad();
  step.running_mean = norm.state()[2].tensor;
  return step;
}

TEST(BatchNormGelu, OnePassHasTheBitsOfTwoInLessMemory) {
  for (const int64_t groups : {1, 2, 4}) {
    SCOPED_TRACE(groups);
    const Step want = step_of({.one_pass = false, .forgets = false, .groups = groups});
    for (const bool forgets : {false, true}) {
      const Step got = step_of({.one_pass = true, .forgets = forgets, .groups = groups});
      EXPECT_TRUE(same_bits(got.out, want.out));
      EXPECT_TRUE(same_bits(got.grad_in, want.grad_in));
      EXPECT_TRUE(same_bits(got.grad_weight, want.grad_weight));
      EXPECT_TRUE(same_bits(got.grad_bias, want.grad_bias));
      EXPECT_TRUE(same_bits(got.running_mean, want.running_mean));
      EXPECT_EQ(want.kept - got.kept, want.out.nbytes()) << "GELU's input";
    }
  }
}

TEST(BatchNormGelu, EvaluationHasThemToo) {
  Stream stream;
  Mt19937 rng(42);
  BatchNorm norm(Init{rng}, kChannels, {.activation = Activation::kGelu});
  BatchNorm plain(Init{rng}, kChannels);
  for (BatchNorm* layer : {&norm, &plain}) layer->train(false);
  const Var x(random_tensor(kShape, 1, -1, 2), make_batch(stream, Shards::single(kImages), false));
  EXPECT_TRUE(same_bits(norm.forward(x).value(), gelu(plain.forward(x)).value()));
}

TEST(BatchNormGelu, TakesNoResidual) {
  Stream stream;
  Mt19937 rng(42);
  BatchNorm norm(Init{rng}, kChannels, {.activation = Activation::kGelu});
  const Var x(random_tensor(kShape, 1), make_batch(stream, Shards::single(kImages)));
  EXPECT_THROW(norm.forward({x}, x), ShapeError);
  norm.train(false);
  EXPECT_THROW(norm.forward({x}, x), ShapeError);
}

}  // namespace
}  // namespace lockstep::nn::batch_norm_gelu_test
