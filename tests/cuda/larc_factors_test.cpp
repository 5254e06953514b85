#include "tests/support/cuda_test.h"
#include "tests/support/larc_cases.h"

namespace lockstep::kernels::larc_factors_test {
namespace {

class CudaLarcFactors : public testing::CudaTest {};

TEST_F(CudaLarcFactors, MatchReference) {
  testing::expect_larc_factors(stream_);
}

TEST_F(CudaLarcFactors, AreApexs) {
  testing::expect_apexs_factors(stream_);
}

}  // namespace
}  // namespace lockstep::kernels::larc_factors_test
