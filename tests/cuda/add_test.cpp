#include "kernels/elementwise/add.h"

#include <limits>
#include <tuple>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::add_test {
namespace {

using testing::CudaTest;
using testing::kFloatTypes;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::same_bits_or_nan;
using testing::tensor_of;

Tensor cpu_sum(const Tensor& src, const Tensor& dst) {
  Stream stream;
  Tensor sum = to_row_major(dst);
  add(stream, src, sum);
  return sum;
}

class CudaAdd : public testing::CudaTestWith<std::tuple<Dtype, int64_t>> {};

TEST_P(CudaAdd, GivesTheBitsOfTheCpu) {
  const auto [dtype, count] = GetParam();
  const Tensor src = rounded_to(dtype, random_tensor({count}, 1));
  const Tensor dst = rounded_to(dtype, random_tensor({count}, 2));
  const Tensor want = cpu_sum(src, dst);
  for (const bool aligned : {true, false}) {
    Tensor sum = aligned ? upload(dst) : upload_misaligned(dst);
    add(stream_, upload(src), sum);
    EXPECT_TRUE(same_bits(download(sum), want)) << (aligned ? "aligned" : "misaligned");
  }
  Tensor sum = upload(dst);
  add(stream_, upload_misaligned(src), sum);
  EXPECT_TRUE(same_bits(download(sum), want)) << "src misaligned";
}
INSTANTIATE_TEST_SUITE_P(Lengths,
                         CudaAdd,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(0, 1, 7, 8, 9, 2048, 5003)));

class CudaAddSpecial : public CudaTest {};

TEST_F(CudaAddSpecial, NanInfinityTiesAndDenormalsAsOnTheCpu) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> a = {kNan, kInf, kInf, -0.0, 1, 1, 0x1p-24, 0x1p-133, 65504, 3e38};
  const std::vector<double> b = {1, -kInf, 1, -0.0, 0x1p-11, 0x3p-9, 0x1p-24, 0x1p-133, 16, 3e38};
  for (const Dtype dtype : kFloatTypes) {
    const Tensor src = tensor_of(a, {10}, dtype);
    Tensor sum = upload(tensor_of(b, {10}, dtype));
    add(stream_, upload(src), sum);
    EXPECT_TRUE(same_bits_or_nan(download(sum), cpu_sum(src, tensor_of(b, {10}, dtype))))
        << name_of(dtype);
  }
}

}  // namespace
}  // namespace lockstep::kernels::add_test
