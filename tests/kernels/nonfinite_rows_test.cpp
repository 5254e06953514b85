#include "kernels/reduce/nonfinite_rows.h"

#include <gtest/gtest.h>

#include "tests/reference/nonfinite_rows.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/nonfinite_values.h"
#include "tests/support/poisoned_tensor.h"

namespace lockstep::kernels::nonfinite_rows_test {
namespace {

using testing::kFloatTypes;
using testing::mostly_finite;
using testing::poisoned_tensor;
using testing::values_of;

std::vector<int32_t> counts_of(const Tensor& counts) {
  return {counts.span<int32_t>().begin(), counts.span<int32_t>().end()};
}

class NonfiniteRowsShapes : public ::testing::TestWithParam<Shape> {};

TEST_P(NonfiniteRowsShapes, MatchesReferenceOnAnyNumberOfThreads) {
  const Shape& shape = GetParam();
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = mostly_finite(shape, dtype);
    const auto want = reference::nonfinite_rows(values_of(in), static_cast<size_t>(shape[0]));
    for (const int threads : {1, 3}) {
      Stream stream(Device::kCpu, threads);
      Tensor counts = poisoned_tensor({shape[0]}, Dtype::kI32);
      nonfinite_rows(stream, in, counts);
      EXPECT_EQ(counts_of(counts), want) << name_of(dtype);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes,
                         NonfiniteRowsShapes,
                         ::testing::Values(Shape{0, 4},
                                           Shape{3, 0},
                                           Shape{7},
                                           Shape{5, 33},
                                           Shape{3, 2, 5, 7},
                                           Shape{2, 70001}));

// More than a 16-bit lane can count.
TEST(NonfiniteRows, CountsARowThatIsNotFiniteAtAll) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    Tensor in = poisoned_tensor({1, 140003}, dtype);  // every bit set: NaN
    Tensor counts = poisoned_tensor({1}, Dtype::kI32);
    nonfinite_rows(stream, in, counts);
    EXPECT_EQ(*counts.data<int32_t>(), 140003) << name_of(dtype);
  }
}

TEST(NonfiniteRows, EveryLevelCountsAlike) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = mostly_finite({3, 1003}, dtype);
    for (NonfiniteRows* body : LS_ISA_BODIES(nonfinite_rows)) {
      Tensor counts = poisoned_tensor({3}, Dtype::kI32);
      body(stream, in, counts);
      EXPECT_EQ(counts_of(counts), reference::nonfinite_rows(values_of(in), 3));
    }
  }
}

TEST(NonfiniteRows, RejectsOtherShapesAndDtypes) {
  Stream stream;
  const Tensor in = Tensor::zeros({2, 3}, Dtype::kF32);
  Tensor counts = Tensor::zeros({2}, Dtype::kI32);
  Tensor three = Tensor::zeros({3}, Dtype::kI32);
  Tensor floats = Tensor::zeros({2}, Dtype::kF32);
  EXPECT_THROW(nonfinite_rows(stream, in, three), ShapeError);
  EXPECT_THROW(nonfinite_rows(stream, in, floats), DtypeError);
  EXPECT_THROW(nonfinite_rows(stream, counts, counts), DtypeError);
  EXPECT_THROW(nonfinite_rows(stream, Tensor::zeros({}, Dtype::kF32), counts), ShapeError);
}

TEST(NonfiniteRows, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor in = Tensor::empty({2, int64_t{1} << 20}, Dtype::kF16, Device::kDry);
  Tensor counts = Tensor::empty({2}, Dtype::kI32, Device::kDry);
  nonfinite_rows(stream, in, counts);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, (4 << 20) + 8);
  const Tensor huge = Tensor::empty({2, int64_t{1} << 31}, Dtype::kF16, Device::kDry);
  EXPECT_THROW(nonfinite_rows(stream, huge, counts), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels::nonfinite_rows_test
