// A convolution with the batch norms around it: on hardware cuDNN's engines where it has them;
// under emulation the definition.
#include "kernels/conv/conv2d_fused.h"

#include <optional>

#include <fmt/core.h>

#include "core/cuda/device.h"
#include "tests/reference/conv2d_fused.h"
#include "tests/support/close.h"
#include "tests/support/conv2d_problem.h"
#include "tests/support/cuda_test.h"

namespace lockstep::kernels::conv2d_fused_test {
namespace {

using reference::Conv2dSizes;
using testing::close_sum;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::square;
using testing::values_of;

Shape rows_of(const Tensor& tensor) {
  return {tensor.shape()[0] * tensor.shape()[1], tensor.shape()[2]};
}

// On the CPU, random.
struct Problem : testing::Conv2dProblem {
  Problem(const Conv2dSizes& sizes, int64_t shards, bool with_norm, Dtype dtype = Dtype::kF16)
      : Conv2dProblem(sizes, dtype) {
    if (with_norm) affine = rounded_to(dtype, random_tensor({2, shards, z.c}, 5));
  }

  Dtype dtype() const { return in.dtype(); }

  Tensor affine;
};

struct Results {
  Tensor out, sums, grad_weight;
};

class CudaConv2dFused : public testing::CudaTest {
 protected:
  Results run(const Shards& shards, const Problem& p) {
    const Tensor in = upload(p.in);
    const Tensor affine = p.affine.defined() ? upload(p.affine) : Tensor();
    Tensor out = poisoned(p.grad_out.shape(), p.dtype());
    Tensor sums = poisoned({2, shards.local(), p.z.k}, Dtype::kF32);
    Results got;
    conv2d_fused_forward(stream_, shards, {in, upload(p.weight), {}, p.params, out}, affine, sums);
    if (affine.defined()) {
      Tensor grad_weight = poisoned({shards.local(), p.weight.numel()}, Dtype::kF32);
      conv2d_fused_backward_weight(
          stream_,
          shards,
          {in, upload(p.grad_out), p.weight.shape(), p.params, grad_weight},
          affine);
      got.grad_weight = download(grad_weight);
    }
    got.out = download(out);
    got.sums = download(sums);
    return got;
  }
  // Nothing where cuDNN has no such engine: it must have those for f16 up to sm_90.
  std::optional<Results> try_run(const Shards& shards, const Problem& p) {
    try {
      return run(shards, p);
    } catch (const EnvironmentError&) {
      if (p.dtype() == Dtype::kF16 && lockstep::cuda::device_properties().major < 10) throw;
      return std::nullopt;
    }
  }
};

// What `in` stands for in shard k, rounded as it is before it is multiplied.
std::vector<double> normed(const Problem& p, const Shards& shards, int64_t k) {
  const Tensor images = p.in.slice(shards.begin(k), shards.count(k));
  if (!p.affine.defined()) return values_of(images);
  const Tensor rows = p.affine.view(rows_of(p.affine));
  const std::vector<double> out = reference::normed(
      values_of(images), values_of(rows.slice(k, 1)), values_of(rows.slice(shards.local() + k, 1)));
  return values_of(testing::tensor_of(out, images.shape(), p.dtype()));
}

void expect_reference(const Results& got, const Shards& shards, const Problem& p) {
  const std::vector<double> sums = values_of(got.sums.view(rows_of(got.sums)));
  for (int64_t k = 0; k < shards.local(); ++k) {
    Conv2dSizes z = p.z;
    z.n = shards.count(k);
    const std::vector<double> in = normed(p, shards, k);
    const Tensor out = got.out.slice(shards.begin(k), z.n);
    EXPECT_TRUE(
        close_sum(out, reference::conv2d_forward(in, values_of(p.weight), {}, z), z.c * z.r * z.s));
    const int64_t pixels = z.n * z.oh() * z.ow();
    const std::vector<double> values = values_of(out);
    const reference::ChannelSums want = reference::channel_sums(values, static_cast<size_t>(z.k));
    for (size_t c = 0; c < want.values.size(); ++c) {
      double size = 0;
      for (size_t at = c; at < values.size(); at += want.values.size())
        size = std::max(size, std::abs(values[at]));
      // cuDNN may have summed up values that were not rounded yet.
      const double ulp = p.dtype() == Dtype::kF16    ? 0x1p-11
                         : p.dtype() == Dtype::kBF16 ? 0x1p-8
                                                     : 0;
      const double each = size * (ulp + 1e-6) * static_cast<double>(pixels);
      const size_t row = static_cast<size_t>(k * z.k) + c;
      EXPECT_NEAR(sums[row], want.values[c], each) << "shard " << k << " channel " << c;
      EXPECT_NEAR(
          sums[row + static_cast<size_t>(shards.local() * z.k)], want.squares[c], 2 * size * each)
          << "shard " << k << " channel " << c;
    }
    if (!p.affine.defined()) continue;
    const Tensor grad_out = p.grad_out.slice(shards.begin(k), z.n);
    EXPECT_TRUE(close_sum(rounded_to(p.dtype(), got.grad_weight.slice(k, 1)),
                          reference::conv2d_backward_weight(in, values_of(grad_out), z),
                          pixels));
  }
}

class CudaConv2dFusedCases : public CudaConv2dFused,
                             public ::testing::WithParamInterface<Conv2dSizes> {};

TEST_P(CudaConv2dFusedCases, MatchReferenceHoweverCut) {
  for (const Dtype dtype : testing::kFloatTypes) {
    for (const bool with_norm : {false, true}) {
      for (const int64_t count : {1, 2}) {
        SCOPED_TRACE(fmt::format("{}, norm {}, {} shards", name_of(dtype), with_norm, count));
        const Problem problem(GetParam(), count, with_norm, dtype);
        const Shards shards = Shards::cut(problem.z.n, count, 1);
        const auto got = try_run(shards, problem);
        if (got) expect_reference(*got, shards, problem);
      }
    }
  }
}

TEST_P(CudaConv2dFusedCases, ShardHasTheBitsOfItsOwnRun) {
  const Problem whole(GetParam(), 2, true);
  const Shards shards = Shards::cut(whole.z.n, 2, 1);
  const auto made = try_run(shards, whole);
  if (!made) GTEST_SKIP() << "cuDNN has no such engine here";
  const Results& together = *made;
  for (int64_t k = 0; k < shards.local(); ++k) {
    Problem part = whole;
    part.z.n = shards.count(k);
    part.in = whole.in.slice(shards.begin(k), part.z.n);
    part.grad_out = whole.grad_out.slice(shards.begin(k), part.z.n);
    part.affine = Tensor::empty({2, 1, part.z.c}, Dtype::kF16);
    for (int64_t row = 0; row < 2; ++row) {
      const Tensor from = whole.affine.view(rows_of(whole.affine)).slice(row * 2 + k, 1);
      std::copy_n(from.bytes(),
                  from.nbytes(),
                  part.affine.bytes() + static_cast<size_t>(row) * from.nbytes());
    }
    const Results single = run(Shards::single(part.z.n), part);
    EXPECT_TRUE(same_bits(together.out.slice(shards.begin(k), part.z.n), single.out));
    EXPECT_TRUE(same_bits(together.grad_weight.slice(k, 1), single.grad_weight));
    for (int64_t row = 0; row < 2; ++row) {
      EXPECT_TRUE(same_bits(together.sums.view(rows_of(together.sums)).slice(row * 2 + k, 1),
                            single.sums.view(rows_of(single.sums)).slice(row, 1)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes,
                         CudaConv2dFusedCases,
                         ::testing::Values(square(3, 8, 6, 16, 3, 1, 1),
                                           square(2, 16, 4, 40, 1, 1, 0),
                                           square(4, 8, 5, 8, 3, 2, 1)));

TEST_F(CudaConv2dFused, EmptyShardsHaveSumsOfZero) {
  const Problem p(square(1, 8, 4, 8, 1, 1, 0), 3, true);
  const Shards shards = Shards::cut(1, 3, 1);
  const auto made = try_run(shards, p);
  if (!made) GTEST_SKIP() << "cuDNN has no such engine here";
  const Results& got = *made;
  for (const int64_t row : {0, 1, 3, 4}) {
    EXPECT_TRUE(same_bits(got.sums.view(rows_of(got.sums)).slice(row, 1),
                          Tensor::zeros({1, 8}, Dtype::kF32)))
        << row;
  }
  EXPECT_TRUE(same_bits(got.grad_weight.slice(0, 2), Tensor::zeros({2, 64}, Dtype::kF32)));
}

TEST_F(CudaConv2dFused, RejectsArgumentsThatDoNotFit) {
  const auto zeros = [&](const Shape& shape, Dtype dtype = Dtype::kF16) {
    return upload(Tensor::zeros(shape, dtype));
  };
  const Shards shards = Shards::single(2);
  const Tensor in = zeros({2, 8, 4, 4});
  const Tensor weight = zeros({16, 8, 1, 1});
  const Tensor affine = zeros({2, 1, 8});
  Tensor out = zeros({2, 16, 4, 4});
  Tensor sums = zeros({2, 1, 16}, Dtype::kF32);
  const auto forward = [&](const Tensor& norm, Tensor& to, Tensor& sums_to) {
    conv2d_fused_forward(stream_, shards, {.in = in, .weight = weight, .out = to}, norm, sums_to);
  };
  EXPECT_NO_THROW(forward(affine, out, sums));
  EXPECT_THROW(forward(zeros({2, 2, 8}), out, sums), ShapeError);
  EXPECT_THROW(forward(zeros({2, 1, 8}, Dtype::kF32), out, sums), DtypeError);
  Tensor wrong_out = zeros({2, 16, 4, 3});
  EXPECT_THROW(forward(affine, wrong_out, sums), ShapeError);
  Tensor wrong_sums = zeros({1, 1, 16}, Dtype::kF32);
  EXPECT_THROW(forward(affine, out, wrong_sums), ShapeError);

  const auto backward = [&](const Tensor& norm, const Tensor& grad_out, const Shape& leaves) {
    Tensor grad_weight = zeros(leaves, Dtype::kF32);
    conv2d_fused_backward_weight(
        stream_, shards, {in, grad_out, weight.shape(), {}, grad_weight}, norm);
  };
  EXPECT_NO_THROW(backward(affine, out, {1, 128}));
  EXPECT_THROW(backward({}, out, {1, 128}), ShapeError);
  EXPECT_THROW(backward(affine, wrong_out, {1, 128}), ShapeError);
  EXPECT_THROW(backward(affine, out, {2, 128}), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels::conv2d_fused_test
