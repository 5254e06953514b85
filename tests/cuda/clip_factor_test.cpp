#include "tests/support/clip_factor_cases.h"
#include "tests/support/cuda_test.h"

namespace lockstep::kernels::clip_factor_test {
namespace {

class CudaClipFactor : public testing::CudaTest {};

TEST_F(CudaClipFactor, IsPyTorchs) {
  testing::expect_clip_factors(stream_);
}

}  // namespace
}  // namespace lockstep::kernels::clip_factor_test
