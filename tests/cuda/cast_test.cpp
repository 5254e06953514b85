#include <cmath>
#include <cstring>
#include <tuple>

#include "kernels/elementwise/copy.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::cast_test {
namespace {

using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::same_bits_or_nan;

Tensor cpu_cast(Dtype dtype, const Tensor& src) {
  Stream stream;
  Tensor dst = poisoned_tensor(src.shape(), dtype);
  cast(stream, src, dst);
  return dst;
}

class CudaCast : public testing::CudaTestWith<std::tuple<Dtype, Dtype>> {};

TEST_P(CudaCast, GivesTheBitsOfTheCpu) {
  const auto [from, to] = GetParam();
  for (const int64_t count : {0, 1, 7, 8, 9, 2048, 5003}) {
    const Tensor src = rounded_to(from, random_tensor({count}, 1, -70000, 70000));
    const Tensor want = cpu_cast(to, src);
    for (const bool aligned : {true, false}) {
      Tensor dst =
          aligned ? poisoned({count}, to) : upload_misaligned(poisoned_tensor({count}, to));
      cast(stream_, upload(src), dst);
      EXPECT_TRUE(same_bits(download(dst), want)) << count;
    }
    Tensor dst = poisoned({count}, to);
    cast(stream_, upload_misaligned(src), dst);
    EXPECT_TRUE(same_bits(download(dst), want)) << count << ", src misaligned";
  }
}
INSTANTIATE_TEST_SUITE_P(Types,
                         CudaCast,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::ValuesIn(kFloatTypes)));

class CudaCastPatterns : public testing::CudaTestWith<Dtype> {
 protected:
  void expect_as_on_cpu(Dtype to, const Tensor& src) {
    Tensor dst = poisoned(src.shape(), to);
    cast(stream_, upload(src), dst);
    EXPECT_TRUE(same_bits_or_nan(download(dst), cpu_cast(to, src)))
        << name_of(src.dtype()) << " to " << name_of(to);
  }
};

TEST_P(CudaCastPatterns, EveryPatternWidens) {
  Tensor all = Tensor::empty({65536}, GetParam());
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    std::memcpy(all.bytes() + size_t{2} * bits, &pattern, sizeof(pattern));
  }
  for (const Dtype to : kFloatTypes) expect_as_on_cpu(to, all);
}

TEST_P(CudaCastPatterns, TiesRoundToEvenAndTheirNeighborsToTheNearest) {
  const reference::FloatFormat format = testing::format_of(GetParam());
  const uint32_t infinity = ((1U << format.exponent_bits) - 1) << format.mantissa_bits;
  std::vector<double> values;
  for (uint32_t bits = 0; bits < infinity; bits += 7) {
    const double next = bits + 1 == infinity ? std::ldexp(1.0, format.max_exponent() + 1)
                                             : reference::decode(bits + 1, format);
    const auto tie = static_cast<float>((reference::decode(bits, format) + next) / 2);
    for (const float value : {tie, std::nextafter(tie, 0.0F), std::nextafter(tie, INFINITY)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  for (const float value : {0.0F, INFINITY, NAN, 3.4028235e38F, 1e-45F, 65520.0F}) {
    values.push_back(value);
    values.push_back(-value);
  }
  const Shape shape = {static_cast<int64_t>(values.size())};
  expect_as_on_cpu(GetParam(), testing::tensor_of(values, shape, Dtype::kF32));
}
INSTANTIATE_TEST_SUITE_P(SixteenBit,
                         CudaCastPatterns,
                         ::testing::Values(Dtype::kF16, Dtype::kBF16));

}  // namespace
}  // namespace lockstep::kernels::cast_test
