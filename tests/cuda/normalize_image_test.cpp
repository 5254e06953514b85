#include "kernels/image/normalize_image.h"

#include <tuple>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"

namespace lockstep::kernels::normalize_image_test {
namespace {

using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::rounded_to;
using testing::same_bits;

// Every byte in every channel when there are 256 pixels.
Tensor counting_bytes(const Shape& shape) {
  Tensor in = Tensor::empty(shape, Dtype::kU8);
  for (int64_t i = 0; i < in.numel(); ++i) {
    in.data<uint8_t>()[i] = static_cast<uint8_t>(i / shape[1] + i % shape[1]);
  }
  return in;
}

NormalizeImageParams params_of(int64_t channels) {
  NormalizeImageParams params;
  for (int64_t c = 0; c < channels; ++c) {
    params.mean.push_back(0.4F + 0.03F * static_cast<float>(c));
    params.std.push_back(0.2F + 0.01F * static_cast<float>(c));
  }
  return params;
}

class CudaNormalizeImage : public testing::CudaTestWith<std::tuple<Dtype, Shape>> {};

TEST_P(CudaNormalizeImage, HasTheBitsOfTheCpuRounded) {
  const auto& [dtype, shape] = GetParam();
  const Shards shards = Shards::cut(shape[0], 2, 1);
  const Tensor in = counting_bytes(shape);
  const NormalizeImageParams all = params_of(shape[1]);
  for (const NormalizeImageParams& params :
       {all, {}, {.mean = all.mean, .std = {}}, {.mean = {}, .std = all.std}}) {
    Stream cpu;
    Tensor want = poisoned_tensor(shape, Dtype::kF32);
    normalize_image(cpu, shards, in, params, want);
    for (const bool aligned : {true, false}) {
      Tensor out = poisoned(shape, dtype);
      normalize_image(stream_, shards, aligned ? upload(in) : upload_misaligned(in), params, out);
      EXPECT_TRUE(same_bits(download(out), rounded_to(dtype, want)));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaNormalizeImage,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::Values(Shape{1, 1, 16, 16},
                                                              Shape{2, 3, 16, 17},
                                                              Shape{3, 5, 3, 1},
                                                              Shape{1, 64, 2, 2},
                                                              Shape{1, 1, 1, 1},
                                                              Shape{0, 3, 4, 4})));

class CudaNormalizeImageErrors : public testing::CudaTest {};

TEST_F(CudaNormalizeImageErrors, NamesWhatIsWrong) {
  Tensor out = poisoned({1, 65, 1, 1}, Dtype::kF32);
  const Tensor in = upload(counting_bytes({1, 65, 1, 1}));
  try {
    normalize_image(stream_, Shards::single(1), in, {}, out);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[normalize_image] channels: got 65, expected 64 at most on CUDA");
  }
  Tensor bytes = poisoned({1, 65, 1, 1}, Dtype::kU8);
  EXPECT_THROW(normalize_image(stream_, Shards::single(1), in, {}, bytes), DtypeError);
}

}  // namespace
}  // namespace lockstep::kernels::normalize_image_test
