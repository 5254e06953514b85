#include <gtest/gtest.h>

#include "kernels/support/onednn/weights.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::onednn::onednn_weights_test {
namespace {

using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;

// Of the type that `weight` has, as must `desc`.
Tensor packed_of(const WeightLayout& layout, const MemoryDesc& desc, const Tensor& weight) {
  const Dtype dtype = weight.dtype();
  Tensor packed = poisoned_tensor({static_cast<int64_t>(desc.get_size() / size_of(dtype))}, dtype);
  for (int64_t piece = layout.pieces(); piece-- > 0;) {  // in any order
    layout.pack(piece, dtype, weight.bytes(), packed.bytes());
  }
  return packed;
}

class WeightLayouts : public ::testing::TestWithParam<std::tuple<Shape, Format>> {};

TEST_P(WeightLayouts, GivesBackWhatItPackedAndZerosTheRest) {
  const auto& [shape, format] = GetParam();
  const MemoryDesc desc = desc_of(shape, Dtype::kF32, format);
  const WeightLayout layout(shape, 1, desc);
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

  const MemoryDesc short_desc = desc_of(shape, Dtype::kBF16, format);
  const Tensor short_packed =
      packed_of(WeightLayout(shape, 1, short_desc), short_desc, rounded_to(Dtype::kBF16, weight));
  EXPECT_TRUE(same_bits(short_packed, rounded_to(Dtype::kBF16, packed)));
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
                                                              Format::OIhw16i16o2i,
                                                              Format::OIhw8o16i2o,
                                                              Format::ABcd4b4a)));

// Extents (groups,K/groups,C/groups,R,S), none a multiple of the blocks.
TEST(WeightLayout, GivesBackGroupsAndZerosTheRest) {
  const Shape shape{15, 3, 3, 2};
  const Tensor weight = random_tensor(shape, 1, 1, 2);
  double sum = 0;
  for (const float value : weight.span<const float>()) sum += value;
  for (const Format format : {Format::goihw, Format::gOIhw8i8o, Format::Goihw4g}) {
    const MemoryDesc desc({5, 3, 3, 3, 2}, dnnl::memory::data_type::f32, format);
    const WeightLayout layout(shape, 5, desc);
    const Tensor packed = packed_of(layout, desc, weight);
    double packed_sum = 0;
    for (const float value : packed.span<const float>()) packed_sum += value;
    EXPECT_NEAR(packed_sum, sum, 1e-9 * sum);
    Tensor back = poisoned_tensor(shape, Dtype::kF32);
    layout.unpack(packed.data<float>(), back.data<float>());
    EXPECT_TRUE(same_bits(back, weight));
  }
}

TEST(WeightLayout, PlacesValuesWhereTheFormatSays) {
  const Shape shape{48, 40, 3, 2};  // (K,C,R,S)
  const Tensor weight = random_tensor(shape, 1);
  const float* plain = weight.data<float>();
  const MemoryDesc outer = desc_of(shape, Dtype::kF32, Format::Acdb16a);
  const MemoryDesc both = desc_of(shape, Dtype::kF32, Format::ABcd16b16a);
  const Tensor filters = packed_of(WeightLayout(shape, 1, outer), outer, weight);
  const Tensor blocks = packed_of(WeightLayout(shape, 1, both), both, weight);
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

TEST(WidenedWeights, AreExactOnAnyNumberOfThreads) {
  const Tensor weight = rounded_to(Dtype::kF16, random_tensor({40000}, 1));
  const Tensor want = rounded_to(Dtype::kF32, weight);
  for (const int threads : {1, 3}) {
    Stream stream(Device::kCpu, threads);
    Tensor got = poisoned_tensor({40000}, Dtype::kF32);
    ASSERT_GE(widened_bytes(weight), got.nbytes());
    EXPECT_EQ(widened(stream, weight, got.bytes()), got.bytes());
    EXPECT_TRUE(same_bits(got, want));
    EXPECT_EQ(widened_bytes(want), 0U);
    EXPECT_EQ(widened(stream, want, got.bytes()), want.bytes());
  }
}

}  // namespace
}  // namespace lockstep::kernels::onednn::onednn_weights_test
