#include <gtest/gtest.h>

#include "kernels/optim/gradient_factors.h"
#include "tests/support/larc_cases.h"

namespace lockstep::kernels::larc_factors_test {
namespace {

TEST(LarcFactors, MatchReference) {
  Stream stream;
  testing::expect_larc_factors(stream);
}

TEST(LarcFactors, AreApexs) {
  Stream stream;
  testing::expect_apexs_factors(stream);
}

// Gradients that were clipped before have their clipped norm.
TEST(LarcFactors, SeeTheGradientAsTheOptimizerWill) {
  Stream stream;
  const Tensor half = testing::row_of({0.5F});
  const LarcParams plain = {.clip = false, .lr = 1};
  const LarcParams halved = {.clip = false, .lr = 1, .control = {.grad_factor = half}};
  EXPECT_EQ(testing::larc_factors(stream, {{3, 8, 0.1}}, halved),
            testing::larc_factors(stream, {{3, 4, 0.1}}, plain));
}

TEST(LarcFactors, RejectsArgumentsThatDoNotFit) {
  Stream stream;
  const Tensor norms = Tensor::zeros({5}, Dtype::kF32);
  const Tensor decays = Tensor::zeros({2}, Dtype::kF32);
  Tensor factors = Tensor::zeros({2}, Dtype::kF32);
  Tensor three = Tensor::zeros({3}, Dtype::kF32);
  Tensor none = Tensor::zeros({0}, Dtype::kF32);
  EXPECT_THROW(larc_factors(stream, norms, decays, {.trust = 0}, factors), ShapeError);
  EXPECT_THROW(larc_factors(stream, norms, decays, {}, three), ShapeError);
  EXPECT_THROW(larc_factors(stream, norms, three, {}, factors), ShapeError);
  EXPECT_THROW(larc_factors(stream, three, decays, {}, factors), ShapeError);
  EXPECT_THROW(larc_factors(stream, norms, none, {}, none), ShapeError);
  const Tensor integers = Tensor::zeros({5}, Dtype::kI32);
  EXPECT_THROW(larc_factors(stream, integers, decays, {}, factors), DtypeError);
}

}  // namespace
}  // namespace lockstep::kernels::larc_factors_test
