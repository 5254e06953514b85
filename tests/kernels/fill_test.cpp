#include "kernels/elementwise/fill.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/reference/cast.h"
#include "tests/reference/fill.h"
#include "tests/support/isa_bodies.h"
#include "tests/support/poisoned_tensor.h"

namespace lockstep::kernels::fill_test {
namespace {

using testing::poisoned_tensor;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
void expect_filled(double value, T want) {
  for (const int threads : {1, 2, 3}) {
    Stream stream(Device::kCpu, threads);
    for (const int64_t length : {0, 1, 17, 50021}) {
      Tensor out = poisoned_tensor({length}, DtypeOf<T>::kValue);
      fill(stream, value, out);
      const std::vector<T> all = reference::fill(static_cast<size_t>(length), want);
      EXPECT_TRUE(length == 0 || std::memcmp(out.bytes(), all.data(), out.nbytes()) == 0)
          << name_of(out.dtype()) << " " << length << " on " << threads << " threads";
    }
  }
}

TEST(Fill, FillsEveryDtype) {
  expect_filled<float>(0.1, 0.1F);
  expect_filled<Half>(-1.5, Half(-1.5F));
  expect_filled<BFloat16>(-1.5, BFloat16(-1.5F));
  expect_filled<uint8_t>(255, 255);
  expect_filled<int32_t>(-0x1p31, std::numeric_limits<int32_t>::min());
  expect_filled<int64_t>(0x1p62, int64_t{1} << 62);
}

template <class T>
double filled_16_bit(double value, const reference::FloatFormat& format) {
  Stream stream;
  Tensor out = poisoned_tensor({1}, DtypeOf<T>::kValue);
  fill(stream, value, out);
  return reference::decode(out.data<T>()->bits, format);
}

TEST(Fill, RoundsOnceToSixteenBits) {
  for (const double value : {0.1,
                             1 + 0x1p-11,            // ties of f16 and just off them, nearer than
                             1 + 0x1p-11 + 0x1p-40,  // f32 can tell
                             1 + 0x3p-11 - 0x1p-40,  //
                             1 + 0x1p-8 + 0x1p-40,   // the same for bf16
                             1 + 0x3p-8 - 0x1p-40,   //
                             65519.999999999,        // below the tie that overflows
                             65520.0,                //
                             0x1p-25 + 0x1p-60,      // denormals
                             0x1p-25,                //
                             1e300,
                             0.0,
                             kInf}) {
    for (const double x : {value, -value}) {
      EXPECT_EQ(filled_16_bit<Half>(x, reference::kF16Format),
                reference::round_to(x, reference::kF16Format))
          << x;
      EXPECT_EQ(filled_16_bit<BFloat16>(x, reference::kBF16Format),
                reference::round_to(x, reference::kBF16Format))
          << x;
    }
  }
  EXPECT_TRUE(std::isnan(filled_16_bit<Half>(kNan, reference::kF16Format)));
  EXPECT_TRUE(std::isnan(filled_16_bit<BFloat16>(kNan, reference::kBF16Format)));
}

TEST(Fill, InstructionSetsAgree) {
  Stream stream;
  for (Fill* body : LS_ISA_BODIES(fill)) {
    Tensor out = poisoned_tensor({33}, Dtype::kF16);
    body(stream, 0.1, out);
    for (const Half value : out.span<const Half>()) EXPECT_EQ(value.bits, Half(0.1F).bits);
  }
}

TEST(Fill, RejectsWhatAnIntegerCannotHold) {
  Stream stream;
  Tensor u8 = Tensor::zeros({2}, Dtype::kU8);
  Tensor i32 = Tensor::zeros({2}, Dtype::kI32);
  Tensor i64 = Tensor::zeros({2}, Dtype::kI64);
  for (const double bad : {-1.0, 256.0, 0.5, kNan, kInf}) {
    EXPECT_THROW(fill(stream, bad, u8), DtypeError) << bad;
  }
  EXPECT_THROW(fill(stream, 0x1p31, i32), DtypeError);
  EXPECT_THROW(fill(stream, -0x1p31 - 1, i32), DtypeError);
  EXPECT_THROW(fill(stream, 0x1p63, i64), DtypeError);
  EXPECT_THROW(fill(stream, -kInf, i64), DtypeError);
  try {
    fill(stream, 256, u8);
    FAIL() << "no error";
  } catch (const DtypeError& error) {
    EXPECT_STREQ(error.what(), "[fill] value: got 256, expected one that u8 holds");
  }
}

TEST(Fill, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  Tensor out = Tensor::empty({10}, Dtype::kI64, Device::kDry);
  fill(stream, 1, out);
  ASSERT_EQ(stream.ledger().size(), 1U);
  EXPECT_EQ(stream.ledger()[0].bytes, 80);
  Tensor on_cpu = Tensor::zeros({10}, Dtype::kI64);
  EXPECT_THROW(fill(stream, 1, on_cpu), DeviceError);
}

}  // namespace
}  // namespace lockstep::kernels::fill_test
