#include "kernels/conv/conv2d.h"

#include <limits>

#include <fmt/core.h>

#include "kernels/conv/conv2d_cudnn.h"
#include "tests/support/close.h"
#include "tests/support/conv2d_problem.h"
#include "tests/support/cuda_test.h"

namespace lockstep::kernels::conv2d_test {
namespace {

using reference::Conv2dSizes;
using testing::close_sum;
using testing::in_groups;
using testing::kFloatTypes;
using testing::same_bits;
using testing::square;
using testing::values_of;
using Problem = testing::Conv2dProblem;

// What the ops make of a problem, on the CPU.
struct Results {
  Tensor out, grad_in, grad_weight, grad_bias;
};

class CudaConv2d : public testing::CudaTest {
 protected:
  Results run(const Shards& shards, const Problem& p, bool aligned = true) {
    const auto put = [&](const Tensor& tensor) {
      return aligned ? upload(tensor) : upload_misaligned(tensor);
    };
    const Conv2dParams& params = p.params;
    const Tensor in = put(p.in);
    const Tensor weight = put(p.weight);
    const Tensor grad_out = put(p.grad_out);
    Tensor out = poisoned(p.grad_out.shape(), p.in.dtype());
    Tensor grad_in = poisoned(p.in.shape(), p.in.dtype());
    Tensor grad_weight = poisoned({shards.local(), p.weight.numel()}, Dtype::kF32);
    Tensor grad_bias = poisoned({shards.local(), p.z.k}, Dtype::kF32);
    conv2d_forward(stream_, shards, {in, weight, put(p.bias), params, out});
    conv2d_backward_data(stream_, shards, grad_out, weight, params, grad_in);
    conv2d_backward_weight(
        stream_, shards, {in, grad_out, p.weight.shape(), params, grad_weight, &grad_bias});
    return {download(out), download(grad_in), download(grad_weight), download(grad_bias)};
  }
};

// As cuDNN takes a bias, and gives a gradient of the weights, where it takes the call.
Tensor as_cudnn_has_it(const Tensor& tensor, const Problem& p, bool aligned) {
  const bool is_cudnns = aligned && cudnn::takes({.dtype = p.in.dtype(),
                                                  .in = p.in.shape(),
                                                  .weight = p.weight.shape(),
                                                  .params = p.params});
  return is_cudnns ? testing::rounded_to(p.in.dtype(), tensor) : tensor;
}

void expect_reference(const Results& got,
                      const Shards& shards,
                      const Problem& p,
                      bool aligned = true) {
  const Conv2dSizes& z = p.z;
  const std::vector<double> weight = values_of(p.weight);
  const std::vector<double> bias = values_of(as_cudnn_has_it(p.bias, p, aligned));
  EXPECT_TRUE(close_sum(
      got.out, reference::conv2d_forward(values_of(p.in), weight, bias, z), z.terms_of_out()));
  EXPECT_TRUE(close_sum(got.grad_in,
                        reference::conv2d_backward_data(values_of(p.grad_out), weight, z),
                        z.terms_of_in()));
  for (int64_t k = 0; k < shards.local(); ++k) {
    const Problem part = p.images(shards.begin(k), shards.count(k));
    const std::vector<double> grad_out = values_of(part.grad_out);
    const int64_t pixels = part.z.n * z.oh() * z.ow();
    EXPECT_TRUE(close_sum(as_cudnn_has_it(got.grad_weight.slice(k, 1), p, aligned),
                          reference::conv2d_backward_weight(values_of(part.in), grad_out, part.z),
                          pixels));
    EXPECT_TRUE(close_sum(
        got.grad_bias.slice(k, 1), reference::conv2d_backward_bias(grad_out, z.k), pixels));
  }
}

class CudaConv2dCases : public CudaConv2d, public ::testing::WithParamInterface<Conv2dSizes> {};

TEST_P(CudaConv2dCases, MatchReferenceHoweverCut) {
  for (const Dtype dtype : kFloatTypes) {
    const Problem problem(GetParam(), dtype);
    for (const int64_t count : {1, 3}) {
      SCOPED_TRACE(fmt::format("{}, {} shards", name_of(dtype), count));
      const Shards shards = Shards::cut(problem.z.n, count, 1);
      expect_reference(run(shards, problem), shards, problem);
    }
    const Shards one = Shards::single(problem.z.n);
    expect_reference(run(one, problem, false), one, problem, false);
  }
}

TEST_P(CudaConv2dCases, ShardHasTheBitsOfItsOwnRun) {
  const Problem whole(GetParam(), Dtype::kF16);
  const Shards shards = Shards::cut(whole.z.n, 3, 1);
  const Results together = run(shards, whole);
  for (int64_t k = 0; k < shards.local(); ++k) {
    const int64_t first = shards.begin(k);
    const int64_t count = shards.count(k);
    const Results single = run(Shards::single(count), whole.images(first, count));
    EXPECT_TRUE(same_bits(together.out.slice(first, count), single.out));
    EXPECT_TRUE(same_bits(together.grad_in.slice(first, count), single.grad_in));
    EXPECT_TRUE(same_bits(together.grad_weight.slice(k, 1), single.grad_weight));
    EXPECT_TRUE(same_bits(together.grad_bias.slice(k, 1), single.grad_bias));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes,
                         CudaConv2dCases,
                         ::testing::Values(square(3, 8, 5, 8, 3, 1, 1),
                                           square(2, 5, 6, 7, 3, 1, 1),
                                           square(2, 2, 7, 3, 7, 2, 3),
                                           square(5, 16, 4, 3, 1, 2, 0),
                                           square(4, 4, 1, 3, 1, 1, 0),
                                           square(1, 1, 5, 35, 2, 1, 0),
                                           square(3, 2, 1, 2, 3, 1, 1),
                                           square(2, 3, 4, 4, 1, 1, 2),
                                           square(1, 1, 1, 1, 1, 1, 0),
                                           in_groups(8, square(3, 32, 4, 32, 3, 2, 1)),
                                           in_groups(2, square(2, 16, 4, 8, 3, 1, 1)),
                                           in_groups(3, square(3, 6, 4, 9, 2, 1, 0)),
                                           Conv2dSizes{.n = 2,
                                                       .c = 3,
                                                       .h = 11,
                                                       .w = 7,
                                                       .k = 4,
                                                       .r = 2,
                                                       .s = 5,
                                                       .stride_h = 3,
                                                       .stride_w = 1,
                                                       .pad_h = 0,
                                                       .pad_w = 2}));

TEST_F(CudaConv2d, WithoutBias) {
  const Problem p(square(2, 3, 4, 5, 3, 1, 1), Dtype::kF32);
  Tensor out = poisoned(p.grad_out.shape(), Dtype::kF32);
  Tensor grad_weight = poisoned({1, p.weight.numel()}, Dtype::kF32);
  const Tensor in = upload(p.in);
  const Shards shards = Shards::single(2);
  conv2d_forward(stream_, shards, {in, upload(p.weight), {}, p.params, out});
  conv2d_backward_weight(
      stream_, shards, {in, upload(p.grad_out), p.weight.shape(), p.params, grad_weight});
  EXPECT_TRUE(close_sum(
      download(out), reference::conv2d_forward(values_of(p.in), values_of(p.weight), {}, p.z), 27));
  EXPECT_TRUE(same_bits(download(grad_weight), run(shards, p).grad_weight));
}

TEST_F(CudaConv2d, EmptyShardsLeavePositiveZero) {
  const Results got = run(Shards::cut(1, 4, 1), Problem(square(1, 3, 4, 2, 3, 1, 1), Dtype::kF16));
  EXPECT_TRUE(same_bits(got.grad_weight.slice(0, 3), Tensor::zeros({3, 54}, Dtype::kF32)));
  EXPECT_TRUE(same_bits(got.grad_bias.slice(0, 3), Tensor::zeros({3, 2}, Dtype::kF32)));
  const Results none = run(Shards::cut(0, 2, 1), Problem(square(0, 3, 4, 2, 3, 1, 1), Dtype::kF32));
  EXPECT_TRUE(same_bits(none.grad_weight, Tensor::zeros({2, 54}, Dtype::kF32)));
}

// Nothing is multiplied by padding: NaN and infinity are where the definition has them.
TEST_F(CudaConv2d, NanAndInfinityReachWhatDependsOnThem) {
  for (const Dtype dtype : kFloatTypes) {
    Problem p(square(2, 2, 5, 3, 3, 1, 1), dtype);
    testing::set(p.in, 24, std::numeric_limits<double>::quiet_NaN());
    testing::set(p.weight, 0, std::numeric_limits<double>::infinity());
    testing::set(p.grad_out, 0, std::numeric_limits<double>::quiet_NaN());
    const Shards shards = Shards::cut(2, 2, 1);
    expect_reference(run(shards, p), shards, p);
  }
}

TEST_F(CudaConv2d, RefusesRowsLongerThan32Bits) {
  constexpr int64_t kHalf = int64_t{1} << 16;
  const Tensor in = poisoned({0, kHalf, 1, kHalf / 2}, Dtype::kF16);  // 2^31 values per row
  const Tensor weight = poisoned({1, kHalf, 1, 1}, Dtype::kF16);
  Tensor out = poisoned({0, 1, 1, kHalf / 2}, Dtype::kF16);
  EXPECT_THROW(conv2d_forward(stream_, Shards::single(0), {in, weight, {}, {}, out}), ShapeError);
}

TEST_F(CudaConv2d, TensorsAreOfOneType) {
  const Problem p(square(1, 3, 4, 2, 3, 1, 1), Dtype::kF16);
  const Shards shards = Shards::single(1);
  Tensor out = poisoned(p.grad_out.shape(), Dtype::kF32);
  EXPECT_THROW(conv2d_forward(stream_, shards, {upload(p.in), upload(p.weight), {}, p.params, out}),
               DtypeError);
  Tensor grad_in = poisoned(p.in.shape(), Dtype::kBF16);
  EXPECT_THROW(conv2d_backward_data(
                   stream_, shards, upload(p.grad_out), upload(p.weight), p.params, grad_in),
               DtypeError);
}

}  // namespace
}  // namespace lockstep::kernels::conv2d_test
