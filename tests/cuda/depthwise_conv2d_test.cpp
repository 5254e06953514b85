#include "kernels/conv/depthwise_conv2d.h"

#include <tuple>

#include "tests/support/cuda_test.h"
#include "tests/support/depthwise_problem.h"

namespace lockstep::kernels::depthwise_conv2d_test {
namespace {

using testing::CudaTest;
using testing::DepthwiseConv2dSizes;
using testing::DepthwiseProblem;
using testing::kFloatTypes;
using testing::random_tensor;
using testing::same_bits;

struct Results {
  Tensor out, grad_in, grad_weight;
};

class CudaDepthwise : public CudaTest {
 protected:
  Results run(const Shards& shards, const DepthwiseProblem& p, bool aligned = true) {
    const auto place = [&](const Tensor& t) { return aligned ? upload(t) : upload_misaligned(t); };
    const Dtype dtype = p.in.dtype();
    const Tensor in = place(p.in);
    const Tensor weight = place(p.weight);
    const Tensor grad_out = place(p.grad_out);
    Tensor out = poisoned(p.grad_out.shape(), dtype);
    Tensor grad_in = poisoned(p.in.shape(), dtype);
    Tensor leaves = poisoned({shards.local(), p.weight.numel()}, Dtype::kF32);
    depthwise_conv2d_forward(stream_, shards, in, weight, p.params, out);
    depthwise_conv2d_backward_data(stream_, shards, grad_out, weight, p.params, grad_in);
    depthwise_conv2d_backward_weight(
        stream_, shards, {in, grad_out, p.weight.shape(), p.params, leaves});
    return {download(out), download(grad_in), download(leaves)};
  }

  Results expect_reference(const Shards& shards, const DepthwiseProblem& p, bool aligned = true) {
    Results got = run(shards, p, aligned);
    EXPECT_TRUE(p.right_out(got.out));
    EXPECT_TRUE(p.right_grad_in(got.grad_in));
    EXPECT_TRUE(p.right_grad_weight(got.grad_weight, shards));
    return got;
  }
};

class CudaDepthwiseCases
    : public CudaDepthwise,
      public ::testing::WithParamInterface<std::tuple<Dtype, DepthwiseConv2dSizes>> {};

// Where a tensor lies changes how it is read, but no bit of what comes out.
TEST_P(CudaDepthwiseCases, MatchReferenceWhereverTheyLie) {
  const auto& [dtype, sizes] = GetParam();
  const DepthwiseProblem problem(sizes, dtype);
  const Shards shards = Shards::cut(sizes.n, 2, 1);
  const Results got = expect_reference(shards, problem);
  const Results misaligned = run(shards, problem, false);
  EXPECT_TRUE(same_bits(misaligned.out, got.out));
  EXPECT_TRUE(same_bits(misaligned.grad_in, got.grad_in));
  EXPECT_TRUE(same_bits(misaligned.grad_weight, got.grad_weight));
}
INSTANTIATE_TEST_SUITE_P(Sizes,
                         CudaDepthwiseCases,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::ValuesIn(testing::kDepthwiseSizes)));

TEST_F(CudaDepthwise, ManyTilesOfChannels) {
  expect_reference(
      Shards::single(1),
      {{.n = 1, .c = 136, .h = 4, .w = 5, .r = 3, .s = 3, .pad_h = 1, .pad_w = 1}, Dtype::kF16});
}

// Filters of 1024 taps fill shared memory with fewer channels than a warp takes elsewhere.
TEST_F(CudaDepthwise, TheMostTaps) {
  const DepthwiseProblem problem({.n = 1, .c = 16, .h = 33, .w = 32, .r = 32, .s = 32},
                                 Dtype::kF16);
  Tensor out = poisoned(problem.grad_out.shape(), Dtype::kF16);
  depthwise_conv2d_forward(
      stream_, Shards::single(1), upload(problem.in), upload(problem.weight), problem.params, out);
  EXPECT_TRUE(problem.right_out(download(out)));
}

TEST_F(CudaDepthwise, MoreResultsThanBlocksTakeAtOnce) {
  expect_reference(Shards::single(4101), {{.n = 4101, .c = 33}, Dtype::kF32});
}

TEST_F(CudaDepthwise, ShardsOfSeveralPieces) {
  const DepthwiseProblem problem(
      {.n = 3, .c = 8, .h = 16, .w = 17, .r = 3, .s = 3, .pad_h = 1, .pad_w = 1}, Dtype::kBF16);
  Shards shards = Shards::single(3);
  shards.offsets = {0, 0, 1, 3};  // none, three and five pieces
  expect_reference(shards, problem);
}

// From 1024 pieces on, pieces grow.
TEST_F(CudaDepthwise, ShardOfTheMostPieces) {
  const DepthwiseProblem problem({.n = 1, .c = 1, .h = 257, .w = 512}, Dtype::kF32);
  Tensor leaf = poisoned({1, 1}, Dtype::kF32);
  depthwise_conv2d_backward_weight(
      stream_,
      Shards::single(1),
      {upload(problem.in), upload(problem.grad_out), problem.weight.shape(), problem.params, leaf});
  EXPECT_TRUE(problem.right_grad_weight(download(leaf), Shards::single(1)));
}

TEST_F(CudaDepthwise, AShardHasTheBitsOfItsOwnRun) {
  const DepthwiseProblem whole(
      {.n = 5, .c = 12, .h = 9, .w = 8, .r = 3, .s = 3, .stride_h = 2, .pad_h = 1, .pad_w = 1},
      Dtype::kF32);
  const Shards shards = Shards::cut(5, 2, 1);
  const Results together = run(shards, whole);
  for (int64_t k = 0; k < shards.local(); ++k) {
    DepthwiseProblem part = whole;
    part.in = whole.in.slice(shards.begin(k), shards.count(k));
    part.grad_out = whole.grad_out.slice(shards.begin(k), shards.count(k));
    const Results alone = run(Shards::single(shards.count(k)), part);
    EXPECT_TRUE(same_bits(alone.grad_weight, together.grad_weight.slice(k, 1)));
  }
}

TEST_F(CudaDepthwise, NanStaysInItsChannel) {
  DepthwiseProblem problem(
      {.n = 1, .c = 16, .h = 4, .w = 4, .r = 3, .s = 3, .pad_h = 1, .pad_w = 1}, Dtype::kF32);
  problem.in.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();         // channel 5
  problem.weight.data<float>()[9 * 7] = std::numeric_limits<float>::infinity();  // channel 7
  expect_reference(Shards::single(1), problem);
}

}  // namespace
}  // namespace lockstep::kernels::depthwise_conv2d_test
