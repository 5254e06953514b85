#include <gtest/gtest.h>

#include "kernels/optim/gradient_factors.h"
#include "tests/support/clip_factor_cases.h"

namespace lockstep::kernels::clip_factor_test {
namespace {

TEST(ClipFactor, IsPyTorchs) {
  Stream stream;
  testing::expect_clip_factors(stream);
}

TEST(ClipFactor, RejectsArgumentsThatDoNotFit) {
  Stream stream;
  const Tensor norms = Tensor::zeros({2}, Dtype::kF32);
  Tensor factor = Tensor::zeros({1}, Dtype::kF32);
  Tensor two = Tensor::zeros({2}, Dtype::kF32);
  EXPECT_THROW(clip_factor(stream, norms, 0, {}, factor), ShapeError);
  EXPECT_THROW(clip_factor(stream, norms, 1, {}, two), ShapeError);
  EXPECT_THROW(clip_factor(stream, Tensor::zeros({0}, Dtype::kF32), 1, {}, factor), ShapeError);
  EXPECT_THROW(clip_factor(stream, norms, 1, norms, factor), DtypeError);
}

}  // namespace
}  // namespace lockstep::kernels::clip_factor_test
