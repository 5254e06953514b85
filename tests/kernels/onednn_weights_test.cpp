#include "kernels/onednn_weights.h"

#include <gtest/gtest.h>

#include "tests/support/close.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::onednn {
namespace {

using testing::poisoned_tensor;
using testing::random_tensor;
using testing::same_bits;

Tensor packed_of(const WeightLayout& layout, const MemoryDesc& desc, const Tensor& weight) {
  const auto floats = static_cast<int64_t>(desc.get_size() / sizeof(float));
  Tensor packed = poisoned_tensor({floats}, Dtype::kF32);
  for (int64_t piece = layout.pieces(); piece-- > 0;) {  // in any order
    layout.pack(piece, weight.data<float>(), packed.data<float>());
  }
  return packed;
}

class WeightLayouts : public ::testing::TestWithParam<std::tuple<Shape, Format>> {};

TEST_P(WeightLayouts, GivesBackWhatItPackedAndZerosTheRest) {
  const auto& [shape, format] = GetParam();
  const MemoryDesc desc = f32_desc(shape, format);
  const WeightLayout layout(shape, desc);
  const Tensor weight = random_tensor(shape, 1, 1, 2);
  const Tensor packed = packed_of(layout, desc, weight);
  double sum = 0;
  double packed_sum = 0;
  for (const float value : weight.span<const float>()) sum += value;
  for (const float value : packed.span<const float>()) packed_sum += value;
  EXPECT_NEAR(packed_sum, sum, 1e-9 * sum);  // of poison it would be NaN
  Tensor back = poisoned_tensor(shape, Dtype::kF32);
  layout.unpack(packed.data<float>(), back.data<float>());
  EXPECT_TRUE(same_bits(back, weight));
}

INSTANTIATE_TEST_SUITE_P(Layouts,
                         WeightLayouts,
                         ::testing::Combine(::testing::Values(Shape{64, 32, 1, 1},
                                                              Shape{16, 3, 7, 7},
                                                              Shape{150, 75, 3, 2},
                                                              Shape{1, 1, 1, 1},
                                                              Shape{5, 200, 1, 1}),
                                            ::testing::Values(Format::ohwi,
                                                              Format::oihw,
                                                              Format::Acdb16a,
                                                              Format::ABcd16b16a,
                                                              Format::BAcd16a16b,
                                                              Format::ABcd8b8a,
                                                              Format::ABcd4b4a)));

TEST(WeightLayout, PlacesValuesWhereTheFormatSays) {
  const Shape shape{48, 40, 3, 2};  // (K,C,R,S)
  const Tensor weight = random_tensor(shape, 1);
  const float* plain = weight.data<float>();
  const MemoryDesc outer = f32_desc(shape, Format::Acdb16a);
  const MemoryDesc both = f32_desc(shape, Format::ABcd16b16a);
  const Tensor filters = packed_of(WeightLayout(shape, outer), outer, weight);
  const Tensor blocks = packed_of(WeightLayout(shape, both), both, weight);
  for (int64_t k = 0; k < 48; ++k) {
    for (int64_t tap = 0; tap < 6; ++tap) {
      for (int64_t c = 0; c < 40; ++c) {
        const float want = plain[(k * 6 + tap) * 40 + c];
        const int64_t in_filters = ((k / 16 * 6 + tap) * 40 + c) * 16 + k % 16;
        const int64_t in_blocks = ((k / 16 * 3 + c / 16) * 6 + tap) * 256 + c % 16 * 16 + k % 16;
        ASSERT_EQ(filters.data<float>()[in_filters], want) << k << " " << tap << " " << c;
        ASSERT_EQ(blocks.data<float>()[in_blocks], want) << k << " " << tap << " " << c;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels::onednn
