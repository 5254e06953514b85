// Values that are forgotten after the forward pass and made again in the backward pass.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/allocator.h"
#include "nn/layers.h"
#include "tests/support/close.h"
#include "tests/support/random_tensor.h"

namespace lockstep::nn::forget_test {
namespace {

using testing::same_bits;

// Three times convolution and batch norm with ReLU.
struct Chain : Module {
  explicit Chain(const Init& init) {
    for (int i = 0; i < 3; ++i) {
      const int64_t channels = i == 0 ? 3 : 16;
      convs.push_back(std::make_unique<Conv2d>(
          init, Conv2dOptions{.in_channels = channels, .out_channels = 16, .kernel = 3, .pad = 1}));
      norms.push_back(
          std::make_unique<BatchNorm>(init, 16, BatchNormOptions{.activation = Activation::kRelu}));
      register_module(fmt::format("conv{}", i), *convs.back());
      register_module(fmt::format("norm{}", i), *norms.back());
    }
  }

  Var forward(const Var& x) override {
    Var y = x;
    for (size_t i = 0; i < convs.size(); ++i) {
      const Var z = convs[i]->forward(y);
      if (forgets && i > 0) y.forget();
      y = norms[i]->forward(z);
    }
    return y;
  }

  bool forgets = false;
  std::vector<std::unique_ptr<Conv2d>> convs;
  std::vector<std::unique_ptr<BatchNorm>> norms;
};

struct Step {
  Tensor out;
  std::vector<Tensor> grads;
  size_t kept = 0;  // bytes between forward and backward
};

Step step_of(bool forgets) {
  Stream stream(Device::kCpu, 2);
  Mt19937 rng(42);
  Chain model(Init{rng});
  model.forgets = forgets;
  const Var x(testing::random_tensor({8, 3, 16, 16}, 7), make_batch(stream, Shards::cut(8, 4, 2)));
  const size_t before = cpu_allocator().stats().bytes_in_use;
  Var loss;
  Step step;
  {
    const Var y = model.forward(x);
    step.out = y.value();
    loss = softmax_cross_entropy(global_avg_pool(y), Tensor::zeros({8}, Dtype::kI32)).loss;
  }
  step.kept = cpu_allocator().stats().bytes_in_use - before;
  loss.backward();
  for (const Var& parameter : model.parameters()) step.grads.push_back(parameter.grad());
  return step;
}

TEST(Forget, SameBitsInLessMemory) {
  const Step kept = step_of(false);
  const Step forgot = step_of(true);
  EXPECT_TRUE(same_bits(forgot.out, kept.out));
  ASSERT_EQ(forgot.grads.size(), 12U);
  for (size_t i = 0; i < kept.grads.size(); ++i) {
    EXPECT_TRUE(same_bits(forgot.grads[i], kept.grads[i])) << i;
  }
  EXPECT_EQ(kept.kept - forgot.kept, 2 * kept.out.nbytes()) << "two results of ReLU";
}

TEST(Forget, EvaluationNeverMakesThemAgain) {
  Stream stream;
  Mt19937 rng(42);
  Chain model(Init{rng});
  model.train(false);
  const Tensor images = testing::random_tensor({2, 3, 8, 8}, 7);
  const auto run = [&](bool recording) {
    return model.forward(Var(images, make_batch(stream, Shards::single(2), recording))).value();
  };
  const Tensor want = run(false);
  model.forgets = true;
  EXPECT_TRUE(same_bits(run(false), want));
  EXPECT_TRUE(same_bits(run(true), want)) << "no reason to fail before backward()";
}

}  // namespace
}  // namespace lockstep::nn::forget_test
