#include "kernels/reduce/nonfinite_rows.h"

#include <tuple>

#include "tests/reference/nonfinite_rows.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/nonfinite_values.h"

namespace lockstep::kernels::nonfinite_rows_test {
namespace {

using testing::kFloatTypes;
using testing::mostly_finite;
using testing::values_of;

class CudaNonfiniteRows : public testing::CudaTestWith<std::tuple<Dtype, Shape>> {};

TEST_P(CudaNonfiniteRows, MatchesReference) {
  const auto& [dtype, shape] = GetParam();
  const Tensor in = mostly_finite(shape, dtype);
  const auto want = reference::nonfinite_rows(values_of(in), static_cast<size_t>(shape[0]));
  for (const bool aligned : {true, false}) {
    Tensor counts = poisoned({shape[0]}, Dtype::kI32);
    nonfinite_rows(stream_, aligned ? upload(in) : upload_misaligned(in), counts);
    const Tensor got = download(counts);
    EXPECT_EQ(std::vector<int32_t>(got.span<int32_t>().begin(), got.span<int32_t>().end()), want);
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaNonfiniteRows,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(Shape{0, 4},
                                                              Shape{3, 0},
                                                              Shape{9},
                                                              Shape{1, 4101},
                                                              Shape{5, 33},
                                                              Shape{3, 8, 2, 5})));

class CudaNonfiniteRowsSpecial : public testing::CudaTest {};

// Blocks take several rows; what one row left in shared memory is not the next one's.
TEST_F(CudaNonfiniteRowsSpecial, MoreRowsThanBlocks) {
  constexpr int64_t kRows = 1024 + 3;
  Tensor in = Tensor::zeros({kRows, 1}, Dtype::kF16);
  for (int64_t row = 0; row < kRows; row += 2) testing::set(in, row, 1e9);
  Tensor counts = poisoned({kRows}, Dtype::kI32);
  nonfinite_rows(stream_, upload(in), counts);
  const Tensor got = download(counts);
  for (int64_t row = 0; row < kRows; ++row) {
    ASSERT_EQ(got.data<int32_t>()[row], row % 2 == 0 ? 1 : 0) << row;
  }
}

}  // namespace
}  // namespace lockstep::kernels::nonfinite_rows_test
