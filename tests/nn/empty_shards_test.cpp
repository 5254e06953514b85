// An empty shard leaves +0 for its leaves and no trace in the others' results.
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "nn/convnet.h"
#include "tests/support/close.h"
#include "tests/support/random_tensor.h"

namespace lockstep::nn::empty_shards_test {
namespace {

using testing::same_bits;

using Counts = std::vector<int64_t>;  // images of each shard

struct Gradients {
  Tensor loss;  // (shards)
  Tensor logits;
  Tensor images;
  std::vector<Tensor> parameters;  // (shards, numel) each
};

Gradients gradients_of(const Counts& counts, int threads) {
  Shards shards{.offsets = {0}, .total = static_cast<int64_t>(counts.size())};
  for (const int64_t count : counts) shards.offsets.push_back(shards.images() + count);
  shards.step_images = shards.images();
  Tensor labels = Tensor::empty({shards.images()}, Dtype::kI32);
  std::iota(labels.data<int32_t>(), labels.data<int32_t>() + labels.numel(), 0);

  Stream stream(Device::kCpu, threads);
  Mt19937 rng(42);
  ConvNet model(Init{rng});
  Var x(testing::random_tensor({shards.images(), 1, 28, 28}, 7, 0, 1), make_batch(stream, shards));
  x.set_requires_grad(true);
  const Var logits = model.forward(x);
  Var loss = softmax_cross_entropy(logits, labels).loss;
  Gradients gradients{
      .loss = loss.value(), .logits = logits.value(), .images = {}, .parameters = {}};
  loss.backward();
  gradients.images = x.grad();
  for (const Var& parameter : model.parameters()) gradients.parameters.push_back(parameter.grad());
  return gradients;
}

// Two shards at most hold images, so that all trees over them are one sum.
class EmptyShards : public ::testing::TestWithParam<Counts> {};

TEST_P(EmptyShards, LeaveNoTrace) {
  Counts filled = GetParam();
  std::erase(filled, 0);
  const Gradients want = gradients_of(filled, 1);
  for (const int threads : {1, 3}) {
    const Gradients got = gradients_of(GetParam(), threads);
    EXPECT_TRUE(same_bits(got.logits, want.logits));
    EXPECT_TRUE(same_bits(got.images, want.images));
    int64_t next = 0;
    for (size_t shard = 0; shard < GetParam().size(); ++shard) {
      const auto k = static_cast<int64_t>(shard);
      const bool empty = GetParam()[shard] == 0;
      const auto expect_leaf = [&](const Tensor& leaves, const Tensor& wanted) {
        const Tensor leaf = leaves.slice(k, 1);
        EXPECT_TRUE(same_bits(
            leaf, empty ? Tensor::zeros(leaf.shape(), Dtype::kF32) : wanted.slice(next, 1)));
      };
      expect_leaf(got.loss, want.loss);
      for (size_t i = 0; i < got.parameters.size(); ++i) {
        expect_leaf(got.parameters[i], want.parameters[i]);
      }
      if (!empty) ++next;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Places,
                         EmptyShards,
                         ::testing::Values(Counts{0, 2, 3},
                                           Counts{2, 3, 0},
                                           Counts{2, 0, 3},
                                           Counts{0, 0, 5, 0},
                                           Counts{5, 0, 0, 0},
                                           Counts{0, 0, 0, 5},
                                           Counts{0, 1, 0, 0, 1, 0}));

}  // namespace
}  // namespace lockstep::nn::empty_shards_test
