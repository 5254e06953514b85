#include "kernels/elementwise/fill.h"

#include <tuple>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"

namespace lockstep::kernels::fill_test {
namespace {

using testing::poisoned_tensor;
using testing::same_bits;

class CudaFill : public testing::CudaTestWith<std::tuple<Dtype, int64_t>> {
 protected:
  void expect_as_on_cpu(double value) {
    const auto [dtype, count] = GetParam();
    Stream cpu;
    Tensor want = poisoned_tensor({count}, dtype);
    fill(cpu, value, want);
    for (const bool aligned : {true, false}) {
      const Tensor before = poisoned_tensor({count}, dtype);
      Tensor out = aligned ? upload(before) : upload_misaligned(before);
      fill(stream_, value, out);
      EXPECT_TRUE(same_bits(download(out), want)) << value;
    }
  }
};

TEST_P(CudaFill, GivesTheBitsOfTheCpu) {
  for (const double value : {0.0, 1.0, 77.0}) expect_as_on_cpu(value);
  if (size_of(std::get<0>(GetParam())) >= 4) expect_as_on_cpu(0x1p30);
}
INSTANTIATE_TEST_SUITE_P(Dtypes,
                         CudaFill,
                         ::testing::Combine(::testing::Values(Dtype::kF32,
                                                              Dtype::kF16,
                                                              Dtype::kBF16,
                                                              Dtype::kU8,
                                                              Dtype::kI32,
                                                              Dtype::kI64),
                                            ::testing::Values(0, 1, 15, 16, 17, 5003)));

class CudaFillRounding : public CudaFill {};

TEST_P(CudaFillRounding, RoundsOnce) {
  for (const double value : {0.1,
                             -1.5,
                             1 + 0x1p-11 + 0x1p-40,  // a tie of f16, nearer than f32 can tell
                             1 + 0x1p-8 + 0x1p-40,   // of bf16
                             0x1p-25 + 0x1p-60,
                             1e300}) {
    expect_as_on_cpu(value);
    expect_as_on_cpu(-value);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Floats,
    CudaFillRounding,
    ::testing::Combine(::testing::Values(Dtype::kF32, Dtype::kF16, Dtype::kBF16),
                       ::testing::Values(9)));

}  // namespace
}  // namespace lockstep::kernels::fill_test
