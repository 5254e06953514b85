#include "kernels/elementwise/scale.h"

#include <limits>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::scale_test {
namespace {

using testing::random_tensor;
using testing::same_bits_or_nan;

constexpr float kInf = std::numeric_limits<float>::infinity();

class CudaScale : public testing::CudaTestWith<int64_t> {};

TEST_P(CudaScale, GivesTheBitsOfTheCpu) {
  Stream cpu;
  for (const float factor : {0.0F, 1.0F / 3, -3.0F, 0x1p-130F, kInf}) {
    const Tensor values = random_tensor({GetParam()}, 1);
    Tensor want = to_row_major(values);
    scale(cpu, factor, want);
    for (const bool aligned : {true, false}) {
      Tensor got = aligned ? upload(values) : upload_misaligned(values);
      scale(stream_, factor, got);
      EXPECT_TRUE(same_bits_or_nan(download(got), want)) << factor;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Lengths, CudaScale, ::testing::Values(0, 1, 3, 4, 5, 1024, 5003));

class CudaScaleSpecial : public testing::CudaTest {};

TEST_F(CudaScaleSpecial, NanAndInfinityFollowIeee) {
  const std::vector<double> values = {kInf, -0.0, std::numeric_limits<double>::quiet_NaN(), 2};
  const std::vector<double> want = {std::numeric_limits<double>::quiet_NaN(), -0.0, values[2], 0};
  Tensor got = upload(testing::tensor_of(values, {4}, Dtype::kF32));
  scale(stream_, 0, got);
  EXPECT_TRUE(same_bits_or_nan(download(got), testing::tensor_of(want, {4}, Dtype::kF32)));
}

}  // namespace
}  // namespace lockstep::kernels::scale_test
