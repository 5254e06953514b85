#include "kernels/conv/winograd.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "kernels/support/isa.h"
#include "kernels/support/onednn/version.h"
#include "tests/support/conv2d_problem.h"

namespace lockstep::kernels::winograd_test {
namespace {

using reference::Conv2dSizes;
using reference::WinogradProducts;
using testing::square;
using testing::values_of;
using Problem = testing::Conv2dProblem;

// Whether this machine computes bf16 in its own arithmetic; elsewhere conv2d's f32 results are
// rounded, which Conv2dCases.SixteenBitsAreF32Rounded shows.
bool has_bf16() {
  return onednn_has_bf16() && isa_level() == IsaLevel::kV4;
}

bool suits(const Conv2dSizes& z, Dtype dtype = Dtype::kBF16) {
  const Problem p(z, dtype);
  return suits_winograd(Stream(), dtype, p.in.shape(), p.weight.shape(), p.params);
}

Conv2dSizes oblong(int64_t n, int64_t c, int64_t h, int64_t w, int64_t k) {
  return {.n = n, .c = c, .h = h, .w = w, .k = k, .r = 3, .s = 3, .pad_h = 1, .pad_w = 1};
}

Conv2dSizes with_5x5(Conv2dSizes z) {
  z.r = z.s = 5;
  z.pad_h = z.pad_w = 2;
  return z;
}

double norm_of(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

// |got - want| / |want|
double distance(const Tensor& got, const std::vector<double>& want) {
  std::vector<double> difference = values_of(got);
  for (size_t i = 0; i < want.size(); ++i) difference[i] -= want[i];
  return norm_of(difference) / norm_of(want);
}

void expect_near_direct_sums(const testing::Conv2dResults& got, const Problem& p, double most) {
  const std::vector<double> in = values_of(p.in), weight = values_of(p.weight);
  const std::vector<double> grad_out = values_of(p.grad_out);
  EXPECT_LT(distance(got.out, reference::conv2d_forward(in, weight, values_of(p.bias), p.z)), most);
  EXPECT_LT(distance(got.grad_in, reference::conv2d_backward_data(grad_out, weight, p.z)), most);
  EXPECT_LT(distance(got.grad_weight, reference::conv2d_backward_weight(in, grad_out, p.z)), most);
}

TEST(Winograd, SuitsWideLayersOfUnitStride) {
  const bool v3 = isa_level() == IsaLevel::kV3;
  const bool either = v3 || has_bf16();
  EXPECT_EQ(suits(square(1, 32, 8, 48, 3, 1, 1)), either);
  EXPECT_EQ(suits(square(1, 32, 7, 32, 3, 1, 1)), either);
  EXPECT_EQ(suits(square(1, 32, 3, 32, 3, 1, 1)), either);
  EXPECT_EQ(suits(square(1, 32, 2, 32, 3, 1, 1)), has_bf16());
  EXPECT_EQ(suits(square(1, 16, 8, 32, 3, 1, 1)), v3);
  EXPECT_EQ(suits(square(1, 40, 8, 32, 3, 1, 1)), v3);
  EXPECT_EQ(suits(square(1, 32, 8, 24, 3, 1, 1)), v3);
  EXPECT_EQ(suits(square(1, 32, 8, 32, 3, 1, 1), Dtype::kF32), v3);
  EXPECT_EQ(suits(square(1, 32, 8, 32, 3, 1, 1), Dtype::kF16), v3);
  EXPECT_EQ(suits(square(1, 16, 14, 32, 5, 1, 2)), v3);
  EXPECT_EQ(suits(square(1, 16, 14, 32, 5, 1, 2), Dtype::kF32), v3);
  EXPECT_FALSE(suits(square(1, 32, 8, 32, 7, 1, 3)));
  EXPECT_FALSE(suits(square(1, 32, 8, 32, 1, 1, 0)));
  EXPECT_FALSE(suits(square(1, 32, 1, 32, 3, 1, 1)));
  EXPECT_FALSE(suits(square(1, 8, 8, 32, 3, 1, 1)));
  EXPECT_FALSE(suits(square(1, 32, 8, 36, 3, 1, 1)));
  EXPECT_FALSE(suits(square(1, 32, 8, 32, 3, 2, 1)));
  EXPECT_FALSE(suits(square(1, 32, 8, 32, 3, 1, 0)));
  EXPECT_FALSE(suits(square(1, 32, 8, 32, 5, 1, 1)));
  EXPECT_FALSE(suits(testing::in_groups(2, square(1, 64, 8, 64, 3, 1, 1))));
}

void expect_reference_however_cut(const Problem& problem, const testing::Conv2dOps& ops) {
  const testing::Conv2dReference reference(problem);
  for (const int64_t count : {1, 2, 3}) {
    const Shards shards = Shards::cut(problem.z.n, count, 1);
    Stream one;
    const testing::Conv2dResults want = testing::run(one, shards, problem, ops);
    SCOPED_TRACE(fmt::format("{}, {} shards", name_of(problem.in.dtype()), count));
    testing::expect_reference(want, shards, problem, reference);
    Stream stream(Device::kCpu, 3);
    testing::expect_same_bits(testing::run(stream, shards, problem, ops), want);
  }
}

std::string case_name(const ::testing::TestParamInfo<Conv2dSizes>& test) {
  const Conv2dSizes& z = test.param;
  return fmt::format("in{}x{}x{}x{}_out{}_of{}x{}", z.n, z.c, z.h, z.w, z.k, z.r, z.s);
}

class WinogradCases : public ::testing::TestWithParam<Conv2dSizes> {};

// Conv2dProblem takes this algorithm's reference where it is used in bf16.
TEST_P(WinogradCases, MatchReferenceHoweverCut) {
  const Problem problem(GetParam(), Dtype::kBF16);
  EXPECT_EQ(problem.rounds_products(), has_bf16());
  expect_reference_however_cut(problem, {});
}

INSTANTIATE_TEST_SUITE_P(
    Sizes,
    WinogradCases,
    ::testing::Values(oblong(1, 32, 2, 2, 32),     // one tile
                      oblong(3, 48, 7, 9, 80),     // panels of 48, 64 and 16
                      oblong(2, 112, 5, 14, 32),   // panels of 64 and 48
                      oblong(1, 80, 34, 33, 96),   // more tiles and panels than at once
                      oblong(3, 64, 15, 15, 64)),  // an odd number of tiles
    case_name);

#if defined(__x86_64__)
constexpr testing::Conv2dOps kOfV3 = {
    cpu_v3::winograd_forward, cpu_v3::winograd_backward_data, cpu_v3::winograd_backward_weight};

class WinogradF32Cases : public ::testing::TestWithParam<Conv2dSizes> {};

TEST_P(WinogradF32Cases, MatchDirectSumsHoweverCut) {
  if (isa_level() < IsaLevel::kV3) GTEST_SKIP() << "an older processor, or LOCKSTEP_ISA";
  for (const Dtype dtype : {Dtype::kF32, Dtype::kF16}) {
    expect_reference_however_cut(Problem(GetParam(), dtype), kOfV3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes,
    WinogradF32Cases,
    ::testing::Values(oblong(1, 16, 3, 3, 16),            // a part of a tile
                      oblong(3, 24, 4, 9, 40),            // whole tiles and parts; strips of 8
                      oblong(2, 72, 7, 5, 136),           // panels of 64 and 8
                      oblong(1, 80, 34, 33, 96),          // more tiles and panels than at once
                      oblong(11, 16, 12, 12, 24),         // 99 tiles: not a whole number of passes
                      with_5x5(oblong(1, 16, 3, 3, 16)),  // whole tiles and parts
                      with_5x5(oblong(3, 16, 14, 14, 32)),   // the ConvNet's
                      with_5x5(oblong(2, 24, 7, 6, 72)),     // panels of 64 and 8
                      with_5x5(oblong(1, 72, 17, 15, 40))),  // more tiles than at once
    case_name);

// The header's claim.
TEST(Winograd, F32IsNearTheDirectSum) {
  if (isa_level() < IsaLevel::kV3) GTEST_SKIP() << "an older processor, or LOCKSTEP_ISA";
  const Conv2dSizes sizes = oblong(2, 128, 14, 14, 64);
  for (const Conv2dSizes& z : {sizes, with_5x5(sizes)}) {
    const Problem p(z);
    Stream stream;
    expect_near_direct_sums(testing::run(stream, Shards::single(2), p, kOfV3), p, 2e-6);
  }
}
#endif

TEST(Winograd, ReferenceIsTheDirectSum) {
  const Problem p(oblong(2, 3, 5, 4, 2));
  const std::vector<double> in = values_of(p.in), weight = values_of(p.weight);
  const std::vector<double> grad_out = values_of(p.grad_out);
  const auto expect = [](const std::vector<double>& got, const std::vector<double>& want) {
    EXPECT_TRUE(testing::close(std::vector<float>(got.begin(), got.end()),
                               std::vector<float>(want.begin(), want.end()),
                               {.abs = 1e-6}));
  };
  constexpr auto kExact = WinogradProducts::kExact;
  expect(reference::winograd_forward(in, weight, p.z, kExact),
         reference::conv2d_forward(in, weight, {}, p.z));
  expect(reference::winograd_backward_data(grad_out, weight, p.z, kExact),
         reference::conv2d_backward_data(grad_out, weight, p.z));
  expect(reference::winograd_backward_weight(in, grad_out, p.z, kExact),
         reference::conv2d_backward_weight(in, grad_out, p.z));
}

// The header's claim. bf16's rounding alone is 0.17 %.
TEST(Winograd, IsNearTheDirectSum) {
  const Problem p(oblong(2, 64, 14, 14, 64), Dtype::kBF16);
  Stream stream;
  expect_near_direct_sums(testing::run(stream, Shards::single(2), p), p, 0.005);
}

TEST(Winograd, NanStaysInTheTilesThatReadIt) {
  const int64_t edge = isa_level() == IsaLevel::kV3 ? 4 : 2;
  Problem p(oblong(2, 32, 8, 8, 32), Dtype::kBF16);
  testing::set(p.in, 0, std::numeric_limits<double>::quiet_NaN());  // image 0, corner
  Stream stream;
  const testing::Conv2dResults got = testing::run(stream, Shards::cut(2, 2, 1), p);
  for (int64_t i = 0; i < got.out.numel(); ++i) {
    const int64_t pixel = i / p.z.k;
    const bool is_in_corner = pixel < 64 && pixel / 8 < edge && pixel % 8 < edge;
    EXPECT_EQ(std::isnan(testing::get(got.out, i)), is_in_corner) << "value " << i;
  }
  EXPECT_TRUE(std::isnan(testing::get(got.grad_weight, 0)));
  for (const double value : values_of(got.grad_weight.slice(1, 1))) EXPECT_FALSE(std::isnan(value));
}

}  // namespace
}  // namespace lockstep::kernels::winograd_test
