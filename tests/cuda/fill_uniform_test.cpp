#include "kernels/random/fill_uniform.h"

#include <tuple>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"

namespace lockstep::kernels::fill_uniform_test {
namespace {

using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::same_bits;

class CudaFillUniform : public testing::CudaTestWith<std::tuple<Dtype, int64_t>> {};

TEST_P(CudaFillUniform, GivesTheBitsOfTheCpu) {
  const auto [dtype, count] = GetParam();
  const Tensor before = poisoned_tensor({count}, dtype);
  Stream cpu;
  FillUniformParams params = {
      .seed = 0x9876543210, .purpose = RandomPurpose::kSynthetic, .epoch = 3};
  for (const auto& [low, high] : {std::pair{0.0F, 1.0F}, {-0.3F, 2.0F}}) {
    params.low = low;
    params.high = high;
    Tensor want = poisoned_tensor({count}, dtype);
    fill_uniform(cpu, params, want);
    for (const bool aligned : {true, false}) {
      Tensor out = aligned ? upload(before) : upload_misaligned(before);
      fill_uniform(stream_, params, out);
      EXPECT_TRUE(same_bits(download(out), want)) << (aligned ? "aligned" : "misaligned");
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Lengths,
                         CudaFillUniform,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(0, 1, 7, 8, 9, 2048, 5003)));

}  // namespace
}  // namespace lockstep::kernels::fill_uniform_test
