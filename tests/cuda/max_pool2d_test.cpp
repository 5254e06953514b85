#include "kernels/pool/max_pool2d.h"

#include <limits>
#include <ostream>
#include <vector>

#include <fmt/core.h>

#include "tests/reference/max_pool2d.h"
#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::max_pool2d_test {
namespace {

using testing::close;
using testing::CudaTest;
using testing::floats_of;
using testing::kFloatTypes;
using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr MaxPool2dParams k2x2 = {2, 2, 2, 2, 0, 0};
constexpr MaxPool2dParams k3x3 = {3, 3, 2, 2, 1, 1};

struct Geometry {
  Shape in;
  MaxPool2dParams params;

  friend void PrintTo(const Geometry& g, std::ostream* out) {  // NOLINT: GoogleTest's name
    const MaxPool2dParams& p = g.params;
    *out << to_string(g.in) << " kernel " << p.kernel_h << "x" << p.kernel_w << " stride "
         << p.stride_h << "x" << p.stride_w << " pad " << p.pad_h << "x" << p.pad_w;
  }
};

reference::MaxPool2dShape reference_shape(const Geometry& g) {
  const MaxPool2dParams& p = g.params;
  return {.n = g.in[0],
          .c = g.in[1],
          .h = g.in[2],
          .w = g.in[3],
          .kernel_h = p.kernel_h,
          .kernel_w = p.kernel_w,
          .stride_h = p.stride_h,
          .stride_w = p.stride_w,
          .pad_h = p.pad_h,
          .pad_w = p.pad_w};
}

Tensor bytes_of(const std::vector<uint8_t>& values, const Shape& shape) {
  Tensor tensor = Tensor::empty(shape, Dtype::kU8);
  std::ranges::copy(values, tensor.data<uint8_t>());
  return tensor;
}

// Coarse values, so that there are ties, with a NaN and an infinity here and there.
Tensor awkward_tensor(const Shape& shape, uint64_t seed) {
  Tensor tensor = random_tensor(shape, seed, -6, 6);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    float& value = tensor.data<float>()[i];
    value = static_cast<float>(static_cast<int>(value)) * (i % 2 == 0 ? 1.0F : 0.5F);
    if (i % 13 == 5) value = static_cast<float>(kNan);
    if (i % 11 == 7) value = static_cast<float>(i % 4 == 0 ? kInf : -kInf);
  }
  return tensor;
}

class CudaMaxPool2d : public testing::CudaTestWith<Geometry> {
 protected:
  // Forward and backward on the device, against the specification.
  void expect_reference(const Tensor& in, bool aligned) {
    const auto [shape, params] = GetParam();
    const Dtype dtype = in.dtype();
    const Shape pooled = max_pool2d_output_shape(shape, params);
    const Shards shards = Shards::cut(shape[0], 2, 1);
    const auto spec = reference_shape(GetParam());
    const auto want = reference::max_pool2d_forward(spec, values_of(in));
    Tensor out = poisoned(pooled, dtype);
    Tensor winner = poisoned(pooled, Dtype::kU8);
    const auto place = [&](const Tensor& t) { return aligned ? upload(t) : upload_misaligned(t); };
    max_pool2d_forward(stream_, shards, place(in), params, out, winner);
    EXPECT_TRUE(close(floats_of(download(out)), want.out, {}));
    EXPECT_TRUE(same_bits(download(winner), bytes_of(want.winner, pooled)));

    // Gradients of few bits: their sums are exact in any type.
    const Tensor grad_out = rounded_to(dtype, awkward_tensor(pooled, 2));
    Tensor grad_in = poisoned(shape, dtype);
    max_pool2d_backward(stream_, shards, place(grad_out), place(download(winner)), params, grad_in);
    EXPECT_TRUE(close(floats_of(download(grad_in)),
                      reference::max_pool2d_backward(spec, values_of(grad_out), want.winner),
                      {}));
  }
};

TEST_P(CudaMaxPool2d, MatchesReference) {
  for (const Dtype dtype : kFloatTypes) {
    for (const bool aligned : {true, false}) {
      SCOPED_TRACE(fmt::format("{} {}", name_of(dtype), aligned ? "aligned" : "misaligned"));
      expect_reference(rounded_to(dtype, awkward_tensor(GetParam().in, 1)), aligned);
    }
  }
}

TEST_P(CudaMaxPool2d, HasTheBitsOfTheCpu) {
  const auto [shape, params] = GetParam();
  const Shape pooled = max_pool2d_output_shape(shape, params);
  const Shards shards = Shards::cut(shape[0], 2, 1);
  const Tensor in = random_tensor(shape, 3);
  Tensor grad_out = random_tensor(pooled, 4);
  for (int64_t i = 0; i < grad_out.numel(); i += 3) grad_out.data<float>()[i] = -0.0F;
  Stream cpu;
  Tensor want = poisoned_tensor(pooled, Dtype::kF32);
  Tensor want_winner = poisoned_tensor(pooled, Dtype::kU8);
  Tensor want_grad = poisoned_tensor(shape, Dtype::kF32);
  max_pool2d_forward(cpu, shards, in, params, want, want_winner);
  max_pool2d_backward(cpu, shards, grad_out, want_winner, params, want_grad);
  Tensor out = poisoned(pooled, Dtype::kF32);
  Tensor winner = poisoned(pooled, Dtype::kU8);
  Tensor grad_in = poisoned(shape, Dtype::kF32);
  max_pool2d_forward(stream_, shards, upload(in), params, out, winner);
  max_pool2d_backward(stream_, shards, upload(grad_out), winner, params, grad_in);
  EXPECT_TRUE(same_bits(download(out), want));
  EXPECT_TRUE(same_bits(download(winner), want_winner));
  EXPECT_TRUE(same_bits(download(grad_in), want_grad));
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    CudaMaxPool2d,
    ::testing::Values(Geometry{{3, 16, 6, 4}, k2x2},                   // tiled
                      Geometry{{2, 33, 5, 7}, k2x2},                   // a row and a column left
                      Geometry{{2, 3, 4, 4}, k2x2},                    // fewer channels than a pack
                      Geometry{{2, 20, 7, 6}, k3x3},                   // overlap; half packs
                      Geometry{{1, 8, 1, 1}, k3x3},                    // one pixel
                      Geometry{{2, 1, 7, 5}, k3x3},                    //
                      Geometry{{1, 8, 4, 6}, {3, 3, 1, 1, 1, 1}},      //
                      Geometry{{1, 8, 4, 7}, {2, 3, 1, 2, 0, 1}},      // not square
                      Geometry{{1, 6, 7, 9}, {2, 2, 3, 4, 1, 0}},      // gaps between windows
                      Geometry{{1, 8, 6, 6}, {3, 3, 3, 3, 1, 1}},      // disjoint with padding
                      Geometry{{1, 2, 6, 7}, {1, 1, 1, 1, 0, 0}},      //
                      Geometry{{1, 4, 17, 10}, {16, 16, 1, 1, 0, 8}},  // 256 taps
                      Geometry{{0, 16, 4, 4}, k2x2},                   // no images
                      Geometry{{2, 0, 4, 4}, k3x3}));                  // no channels

class CudaMaxPool2dWindow : public CudaTest {};

TEST_F(CudaMaxPool2dWindow, MoreImagesThanRowsOfTheGrid) {
  const Shape shape{4099, 1, 1, 1};
  const Tensor in = random_tensor(shape, 5);
  Tensor out = poisoned(shape, Dtype::kF32);
  Tensor winner = poisoned(shape, Dtype::kU8);
  max_pool2d_forward(
      stream_, Shards::single(shape[0]), upload(in), {1, 1, 1, 1, 0, 0}, out, winner);
  EXPECT_TRUE(same_bits(download(out), in));
}

TEST_F(CudaMaxPool2dWindow, OverlappingGradientsAddInRowMajorOrderOfOutputs) {
  constexpr MaxPool2dParams kDense = {3, 3, 1, 1, 1, 1};
  const std::vector<double> grads = {1e8, 1, -1e8, 3, 1e8, 5, -1e8, 7, 1e-8};
  std::vector<uint8_t> taps;  // the center is tap 8 - o of output o, and wins all nine windows
  float want = 0;
  for (size_t o = 0; o < grads.size(); ++o) {
    taps.push_back(static_cast<uint8_t>(8 - o));
    want += static_cast<float>(grads[o]);
  }
  Tensor grad_in = poisoned({1, 1, 3, 3}, Dtype::kF32);
  max_pool2d_backward(stream_,
                      Shards::single(1),
                      upload(tensor_of(grads, {1, 1, 3, 3}, Dtype::kF32)),
                      upload(bytes_of(taps, {1, 1, 3, 3})),
                      kDense,
                      grad_in);
  EXPECT_EQ(download(grad_in).data<float>()[4], want);
}

TEST_F(CudaMaxPool2dWindow, NanWinsTiesGoToTheFirstAndPaddingNeverWins) {
  struct Case {
    std::vector<double> taps;
    uint8_t winner;
  };
  const std::vector<Case> cases = {{{1, 2, 2, 1}, 1},
                                   {{-0.0, 0, 0, -0.0}, 0},
                                   {{1, kNan, kInf, 3}, 1},
                                   {{kNan, 1, kNan, 3}, 2},
                                   {{-kInf, -kInf, -kInf, -kInf}, 0},
                                   {{0x1p-24, 0, 0x1p-23, 0}, 2}};
  for (const Dtype dtype : kFloatTypes) {
    for (const auto& [taps, want] : cases) {
      const Tensor in = tensor_of(taps, {1, 1, 2, 2}, dtype);
      Tensor out = poisoned({1, 1, 1, 1}, dtype);
      Tensor winner = poisoned({1, 1, 1, 1}, Dtype::kU8);
      max_pool2d_forward(stream_, Shards::single(1), upload(in), k2x2, out, winner);
      EXPECT_EQ(*download(winner).data<uint8_t>(), want);
      EXPECT_TRUE(close(floats_of(download(out)), std::vector{taps[want]}, {}));
      // Under 3x3 with padding, tap 4 is the first one inside.
      if (want != 0) continue;
      max_pool2d_forward(stream_, Shards::single(1), upload(in), k3x3, out, winner);
      EXPECT_EQ(*download(winner).data<uint8_t>(), 4);
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels::max_pool2d_test
