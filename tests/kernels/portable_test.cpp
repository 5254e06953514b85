// Processors other than x86-64 compile code without intrinsics. Here it gives the intrinsics' bits.
// The build compiles some <op>_cpu.cpp for it, with LS_ISA=1 and LS_PORTABLE.
#include <bit>
#include <cstring>

#include <gtest/gtest.h>

#include "kernels/elementwise/copy.h"
#include "kernels/image/normalize_image.h"
#include "tests/support/close.h"
#include "tests/support/poisoned_tensor.h"

namespace lockstep::kernels {

namespace cpu_v1 {
Cast cast;
NormalizeImage normalize_image;
}  // namespace cpu_v1

namespace portable_test {
namespace {

using testing::poisoned_tensor;
using testing::same_bits;

// Each 16-bit pattern as the upper half of a float, with lower halves that round down, to even and
// up.
Tensor all_exponents() {
  constexpr uint32_t kLowerHalves[] = {0, 1, 0x1000, 0x7fff, 0x8000, 0x8001, 0xffff};
  Tensor values = Tensor::empty({7, 65536}, Dtype::kF32);
  float* to = values.data<float>();
  for (const uint32_t lower : kLowerHalves) {
    for (uint32_t upper = 0; upper < 65536; ++upper) {
      *to++ = std::bit_cast<float>(upper << 16 | lower);
    }
  }
  return values;
}

// Every pattern; NaNs are quiet, since conversions by the processor alone make them so.
Tensor all_halves(Dtype dtype) {
  const uint32_t infinity = dtype == Dtype::kF16 ? 0x7c00 : 0x7f80;
  const uint32_t quiet = dtype == Dtype::kF16 ? 0x200 : 0x40;
  Tensor values = Tensor::empty({65536}, dtype);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const bool is_nan = (bits & 0x7fff) > infinity;
    const auto half = static_cast<uint16_t>(is_nan ? bits | quiet : bits);
    std::memcpy(values.bytes() + 2 * bits, &half, sizeof(half));
  }
  return values;
}

TEST(PortableKernels, PortableCastsGiveTheSameBits) {
  constexpr Dtype kAll[] = {Dtype::kF32, Dtype::kF16, Dtype::kBF16};
  Stream stream;
  for (const Dtype from : kAll) {
    const Tensor src = from == Dtype::kF32 ? all_exponents() : all_halves(from);
    for (const Dtype to : kAll) {
      Tensor want = poisoned_tensor(src.shape(), to);
      Tensor got = poisoned_tensor(src.shape(), to);
      cast(stream, src, want);
      cpu_v1::cast(stream, src, got);
      EXPECT_TRUE(same_bits(got, want)) << name_of(from) << " to " << name_of(to);
    }
  }
}

TEST(PortableKernels, PortableImagesHaveTheSameBits) {
  Stream stream;
  Tensor in = Tensor::empty({2, 3, 16, 17}, Dtype::kU8);
  for (int64_t i = 0; i < in.numel(); ++i) in.data<uint8_t>()[i] = static_cast<uint8_t>(i * 7);
  const NormalizeImageParams params{.mean = {0.485F, 0.456F, 0.406F},
                                    .std = {0.229F, 0.224F, 0.225F}};
  for (const Dtype dtype : {Dtype::kF32, Dtype::kF16, Dtype::kBF16}) {
    Tensor want = poisoned_tensor(in.shape(), dtype);
    Tensor got = poisoned_tensor(in.shape(), dtype);
    normalize_image(stream, Shards::single(2), in, params, want);
    cpu_v1::normalize_image(stream, Shards::single(2), in, params, got);
    EXPECT_TRUE(same_bits(got, want)) << name_of(dtype);
  }
}

}  // namespace
}  // namespace portable_test
}  // namespace lockstep::kernels
