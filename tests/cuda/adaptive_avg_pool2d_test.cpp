#include <limits>
#include <tuple>

#include "kernels/pool/avg_pool2d.h"
#include "tests/support/adaptive_pool_case.h"
#include "tests/support/close.h"
#include "tests/support/close_sum.h"
#include "tests/support/cuda_test.h"

namespace lockstep::kernels::adaptive_avg_pool2d_test {
namespace {

using testing::AdaptivePoolCase;
using testing::close_sum;
using testing::poisoned_tensor;
using testing::same_bits;
using testing::values_of;

class CudaAdaptiveAvgPool2d
    : public testing::CudaTestWith<std::tuple<Dtype, reference::AdaptivePoolSizes>> {};

TEST_P(CudaAdaptiveAvgPool2d, HasTheBitsOfTheCpuAndMatchesReference) {
  const auto& [dtype, sizes] = GetParam();
  const AdaptivePoolCase pool(sizes, dtype);
  Stream cpu;
  Tensor want = poisoned_tensor(pool.grad_out.shape(), dtype);
  Tensor want_grad = poisoned_tensor(pool.in.shape(), dtype);
  adaptive_avg_pool2d_forward(cpu, pool.shards, pool.in, want);
  adaptive_avg_pool2d_backward(cpu, pool.shards, pool.grad_out, want_grad);
  for (const bool aligned : {true, false}) {
    SCOPED_TRACE(aligned);
    const auto place = [&](const Tensor& t) { return aligned ? upload(t) : upload_misaligned(t); };
    Tensor out = poisoned(want.shape(), dtype);
    Tensor grad_in = poisoned(want_grad.shape(), dtype);
    adaptive_avg_pool2d_forward(stream_, pool.shards, place(pool.in), out);
    adaptive_avg_pool2d_backward(stream_, pool.shards, place(pool.grad_out), grad_in);
    EXPECT_TRUE(same_bits(download(out), want));
    EXPECT_TRUE(same_bits(download(grad_in), want_grad));
    EXPECT_TRUE(close_sum(download(out),
                          reference::adaptive_avg_pool2d_forward(values_of(pool.in), sizes),
                          pool.terms()));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes,
                         CudaAdaptiveAvgPool2d,
                         ::testing::Combine(::testing::ValuesIn(testing::kFloatTypes),
                                            ::testing::ValuesIn(testing::kAdaptivePools)));

class CudaAdaptiveAvgPool2dSpecial : public testing::CudaTest {};

// Five rows in two: 0 to 2 and 2 to 4.
TEST_F(CudaAdaptiveAvgPool2dSpecial, NanReachesItsWindows) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  Tensor out = poisoned({1, 1, 2, 1}, Dtype::kF32);
  for (const auto& [row, first, second] : {std::tuple(2, kNan, kNan), {4, 0.0, kNan}}) {
    Tensor in = Tensor::zeros({1, 1, 5, 1}, Dtype::kF32);
    testing::set(in, row, kNan);
    adaptive_avg_pool2d_forward(stream_, Shards::single(1), upload(in), out);
    const std::vector<double> want = {first, second};
    EXPECT_TRUE(testing::close(testing::floats_of(download(out)), want, {}));
  }
}

}  // namespace
}  // namespace lockstep::kernels::adaptive_avg_pool2d_test
