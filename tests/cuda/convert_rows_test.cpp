#include "kernels/elementwise/convert_rows.h"

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::convert_rows_test {
namespace {

using testing::kFloatTypes;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::values_of;

struct Widths {
  int64_t rows, from, to;
};

class CudaConvertRows : public testing::CudaTestWith<Widths> {
 protected:
  Tensor convert(const Tensor& from, int64_t width, Dtype to_type) {
    const int64_t rows = from.shape()[0];
    const Tensor source = upload(from);
    Tensor to = poisoned({rows, width}, to_type);
    cuda::convert_rows(stream_,
                       {.count = rows,
                        .from_type = from.dtype(),
                        .to_type = to_type,
                        .from_channels = from.shape()[1],
                        .to_channels = width},
                       source.bytes(),
                       to.bytes());
    return download(to);
  }
};

TEST_P(CudaConvertRows, CutsOrFillsUpWithZero) {
  const auto [rows, width, to_width] = GetParam();
  for (const Dtype from_type : kFloatTypes) {
    const Tensor from = rounded_to(from_type, random_tensor({rows, width}, 1));
    const std::vector<double> values = values_of(from);
    for (const Dtype to_type : kFloatTypes) {
      Tensor want = Tensor::zeros({rows, to_width}, Dtype::kF32);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t c = 0; c < std::min(width, to_width); ++c) {
          want.data<float>()[i * to_width + c] =
              static_cast<float>(values[static_cast<size_t>(i * width + c)]);
        }
      }
      EXPECT_TRUE(same_bits(convert(from, to_width, to_type), rounded_to(to_type, want)))
          << name_of(from_type) << " to " << name_of(to_type);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes,
                         CudaConvertRows,
                         ::testing::Values(Widths{7, 3, 4},
                                           Widths{5, 1, 4},
                                           Widths{6, 4, 3},
                                           Widths{9, 10, 12},
                                           Widths{9, 12, 10},
                                           Widths{1, 37, 37},
                                           Widths{300, 4, 4},
                                           Widths{0, 3, 4}));

}  // namespace
}  // namespace lockstep::kernels::convert_rows_test
