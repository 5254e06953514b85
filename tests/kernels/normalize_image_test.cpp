#include "kernels/image/normalize_image.h"

#include <gtest/gtest.h>

#include "tests/reference/normalize_image.h"
#include "tests/support/close.h"
#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"

namespace lockstep::kernels::normalize_image_test {
namespace {

using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::rounded_to;
using testing::same_bits;

const NormalizeImageParams kMnist = {.mean = {0.1307F}, .std = {0.3081F}};
const NormalizeImageParams kImageNet = {.mean = {0.485F, 0.456F, 0.406F},
                                        .std = {0.229F, 0.224F, 0.225F}};

// Every byte in every channel when there are 256 pixels.
Tensor counting_bytes(const Shape& shape) {
  Tensor in = Tensor::empty(shape, Dtype::kU8);
  for (int64_t i = 0; i < in.numel(); ++i) {
    in.data<uint8_t>()[i] = static_cast<uint8_t>(i / shape[1] + i % shape[1]);
  }
  return in;
}

Tensor expected(const Tensor& in, const NormalizeImageParams& params) {
  Tensor out = Tensor::empty(in.shape(), Dtype::kF32);
  for (int64_t i = 0; i < in.numel(); ++i) {
    const auto c = static_cast<size_t>(i % in.shape()[1]);
    out.data<float>()[i] = reference::normalize_image(in.data<uint8_t>()[i],
                                                      params.mean.empty() ? 0 : params.mean[c],
                                                      params.std.empty() ? 1 : params.std[c]);
  }
  return out;
}

struct Case {
  Shape shape;
  NormalizeImageParams params;
};

class NormalizeImageCases : public ::testing::TestWithParam<Case> {};

TEST_P(NormalizeImageCases, EqualsReferenceRoundedBitForBit) {
  const auto& [shape, params] = GetParam();
  const Tensor in = counting_bytes(shape);
  const Tensor want = expected(in, params);
  for (const int threads : {1, 2, 3}) {
    Stream stream(Device::kCpu, threads);
    for (const Dtype dtype : kFloatTypes) {
      Tensor out = poisoned_tensor(shape, dtype);
      normalize_image(stream, Shards::cut(shape[0], 2, 1), in, params, out);
      EXPECT_TRUE(same_bits(out, rounded_to(dtype, want)))
          << name_of(dtype) << ", " << threads << " threads";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Cases,
                         NormalizeImageCases,
                         ::testing::Values(Case{{3, 1, 28, 28}, kMnist},
                                           Case{{2, 3, 16, 17}, kImageNet},
                                           Case{{3, 1, 5, 3}, kMnist},      // less than a vector
                                           Case{{2, 3, 7, 11}, kImageNet},  // and a rest of one
                                           Case{{1, 1, 16, 16}, {}},
                                           Case{{1, 2, 16, 16}, {.mean = {0.5F, 0.25F}, .std = {}}},
                                           Case{{1, 1, 16, 16}, {.mean = {}, .std = {0.3F}}},
                                           Case{{0, 1, 28, 28}, kMnist}));

TEST(NormalizeImage, InstructionSetsAgree) {
  Stream stream;
  const Shards shards = Shards::single(1);
  for (const NormalizeImageParams& params : {kMnist, kImageNet}) {
    const Tensor in = counting_bytes({1, static_cast<int64_t>(params.mean.size()), 16, 17});
    const Tensor want = expected(in, params);
    for (NormalizeImage* body : LS_ISA_BODIES(normalize_image)) {
      for (const Dtype dtype : kFloatTypes) {
        Tensor got = poisoned_tensor(in.shape(), dtype);
        body(stream, shards, in, params, got);
        EXPECT_TRUE(same_bits(got, rounded_to(dtype, want))) << name_of(dtype);
      }
    }
  }
}

TEST(NormalizeImage, RejectsOtherShapes) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const Tensor in = Tensor::zeros({2, 3, 4, 4}, Dtype::kU8);
  Tensor out = Tensor::zeros({2, 3, 4, 4}, Dtype::kF32);
  Tensor wrong = Tensor::zeros({2, 3, 4, 5}, Dtype::kF32);
  Tensor bytes = Tensor::zeros({2, 3, 4, 4}, Dtype::kU8);
  EXPECT_THROW(normalize_image(stream, shards, in, {}, wrong), ShapeError);
  EXPECT_THROW(normalize_image(stream, shards, in, {}, bytes), DtypeError);
  EXPECT_THROW(normalize_image(stream, shards, out, {}, out), DtypeError);
  EXPECT_THROW(normalize_image(stream, Shards::single(1), in, {}, out), ShapeError);
  EXPECT_THROW(normalize_image(stream, shards, in, {.mean = {}, .std = {1}}, out), ShapeError);
  try {
    normalize_image(stream, shards, in, kMnist, out);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[normalize_image] required: a mean per channel");
  }
}

TEST(NormalizeImage, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const Tensor in = Tensor::empty({2, 1, 4, 4}, Dtype::kU8, Device::kDry);
  Tensor out = Tensor::empty({2, 1, 4, 4}, Dtype::kF32, Device::kDry);
  normalize_image(stream, Shards::single(2), in, kMnist, out);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 32 * 5);
}

}  // namespace
}  // namespace lockstep::kernels::normalize_image_test
