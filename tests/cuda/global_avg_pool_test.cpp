#include "tests/reference/global_avg_pool.h"

#include <limits>
#include <tuple>

#include "kernels/pool/avg_pool2d.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::global_avg_pool_test {
namespace {

using testing::close;
using testing::CudaTest;
using testing::floats_of;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

class CudaGlobalAvgPool : public testing::CudaTestWith<std::tuple<Dtype, Shape>> {};

// An f16 or bf16 result has the bits of the f32 sums, rounded.
TEST_P(CudaGlobalAvgPool, HasTheBitsOfTheCpu) {
  const auto& [dtype, shape] = GetParam();
  const Shape means{shape[0], shape[1]};
  const Shards shards = Shards::cut(shape[0], 2, 1);
  const Tensor in = rounded_to(dtype, random_tensor(shape, 1));
  const Tensor grad_out = rounded_to(dtype, random_tensor(means, 2));
  Stream cpu;
  Tensor want = poisoned_tensor(means, Dtype::kF32);
  Tensor want_grad = poisoned_tensor(shape, Dtype::kF32);
  global_avg_pool_forward(cpu, shards, rounded_to(Dtype::kF32, in), want);
  global_avg_pool_backward(cpu, shards, rounded_to(Dtype::kF32, grad_out), want_grad);
  for (const bool aligned : {true, false}) {
    SCOPED_TRACE(aligned);
    Tensor out = poisoned(means, dtype);
    Tensor grad_in = poisoned(shape, dtype);
    global_avg_pool_forward(stream_, shards, aligned ? upload(in) : upload_misaligned(in), out);
    global_avg_pool_backward(
        stream_, shards, aligned ? upload(grad_out) : upload_misaligned(grad_out), grad_in);
    EXPECT_TRUE(same_bits(download(out), rounded_to(dtype, want)));
    EXPECT_TRUE(same_bits(download(grad_in), rounded_to(dtype, want_grad)));
  }
}

TEST_P(CudaGlobalAvgPool, MatchesReference) {
  const auto& [dtype, shape] = GetParam();
  const auto images = static_cast<size_t>(shape[0]);
  const auto channels = static_cast<size_t>(shape[1]);
  const auto pixels = static_cast<size_t>(shape[2] * shape[3]);
  const Tensor in = rounded_to(dtype, random_tensor(shape, 3));
  Tensor out = poisoned({shape[0], shape[1]}, dtype);
  global_avg_pool_forward(stream_, Shards::single(shape[0]), upload(in), out);
  testing::Tolerance tolerance = testing::f32_sum(static_cast<int64_t>(pixels));
  tolerance.rel += dtype == Dtype::kF32 ? 0 : dtype == Dtype::kF16 ? 0x1p-11 : 0x1p-8;
  EXPECT_TRUE(close(floats_of(download(out)),
                    reference::global_avg_pool_forward(values_of(in), images, channels, pixels),
                    tolerance));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes,
    CudaGlobalAvgPool,
    ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                       ::testing::Values(Shape{3, 5, 1, 1},   // one pixel, no packs
                                         Shape{2, 1, 4, 2},   //
                                         Shape{3, 16, 3, 3},  // a pixel more than at once
                                         Shape{2, 20, 7, 7},  // half packs
                                         Shape{2, 18, 3, 2},  // quarter packs
                                         Shape{70, 8, 2, 4},  // more than a block
                                         Shape{2, 33, 5, 5},  //
                                         Shape{0, 4, 2, 2},   //
                                         Shape{2, 0, 2, 2})));

class CudaGlobalAvgPoolSpecial : public CudaTest {};

TEST_F(CudaGlobalAvgPoolSpecial, SumsInRowMajorOrderOfPixels) {
  const std::vector<double> pixels = {1e8, 1, -1e8, 1};  // 1 in this order, else 0 or 2
  Tensor out = poisoned({1, 1}, Dtype::kF32);
  global_avg_pool_forward(
      stream_, Shards::single(1), upload(tensor_of(pixels, {1, 1, 2, 2}, Dtype::kF32)), out);
  EXPECT_EQ(*download(out).data<float>(), 0.25F);
}

TEST_F(CudaGlobalAvgPoolSpecial, SumsOfHalvesDoNotOverflowAndNanStaysInItsChannel) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> in = {6e4, kNan, 0x1p-24, 6e4, 1, 0x1p-24};  // NHWC: 2 pixels
  Tensor out = poisoned({1, 3}, Dtype::kF16);
  global_avg_pool_forward(
      stream_, Shards::single(1), upload(tensor_of(in, {1, 3, 1, 2}, Dtype::kF16)), out);
  const std::vector<double> want = {6e4, kNan, 0x1p-24};
  EXPECT_TRUE(close(floats_of(download(out)), want, {}));
}

// Of more than 64 pieces of eight pixels a block takes several.
TEST_F(CudaGlobalAvgPoolSpecial, BlocksTakeSeveralPieces) {
  const Shape shape{1, 1, 35, 32};
  Tensor grad_in = poisoned(shape, Dtype::kF16);
  const Tensor grad_out = tensor_of(std::vector{35.0}, {1, 1}, Dtype::kF32);
  global_avg_pool_backward(
      stream_, Shards::single(1), upload(rounded_to(Dtype::kF16, grad_out)), grad_in);
  const Tensor got = download(grad_in);
  for (int64_t i = 0; i < got.numel(); ++i) {
    ASSERT_EQ(testing::get(got, i), testing::get(got, 0)) << i;
  }
  EXPECT_NEAR(testing::get(got, 0), 0x1p-5, 0);
}

}  // namespace
}  // namespace lockstep::kernels::global_avg_pool_test
