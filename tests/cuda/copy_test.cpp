#include "kernels/elementwise/copy.h"

#include <tuple>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"

namespace lockstep::kernels::copy_test {
namespace {

class CudaCopy : public testing::CudaTestWith<std::tuple<Dtype, int64_t>> {};

TEST_P(CudaCopy, CopiesBitForBit) {
  const auto [dtype, count] = GetParam();
  Tensor src = Tensor::empty({count}, dtype);
  for (size_t i = 0; i < src.nbytes(); ++i) src.bytes()[i] = static_cast<std::byte>(i * 7);
  for (const bool aligned : {true, false}) {
    Tensor dst = poisoned({count}, dtype);
    copy(stream_, aligned ? upload(src) : upload_misaligned(src), dst);
    EXPECT_TRUE(testing::same_bits(download(dst), src));
  }
}
INSTANTIATE_TEST_SUITE_P(Dtypes,
                         CudaCopy,
                         ::testing::Combine(::testing::Values(Dtype::kF32,
                                                              Dtype::kF16,
                                                              Dtype::kBF16,
                                                              Dtype::kU8,
                                                              Dtype::kI32,
                                                              Dtype::kI64),
                                            ::testing::Values(0, 1, 17, 5003)));

}  // namespace
}  // namespace lockstep::kernels::copy_test
