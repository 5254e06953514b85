#include "kernels/pool/subsample_pad.h"

#include <limits>

#include <fmt/core.h>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"
#include "tests/support/subsample_case.h"

namespace lockstep::kernels::subsample_pad_test {
namespace {

using testing::kFloatTypes;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;
using testing::tensor_of;
using testing::values_of;

using Case = testing::SubsampleCase;

class CudaSubsamplePad : public testing::CudaTestWith<Case> {};

TEST_P(CudaSubsamplePad, MatchesReference) {
  const Case& c = GetParam();
  const Shards shards = Shards::cut(c.in[0], 3, 1);
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = rounded_to(dtype, random_tensor(c.in, 1));
    const Tensor grad_out = rounded_to(dtype, random_tensor(c.out(), 2));
    const Tensor want_out =
        tensor_of(reference::subsample_pad_forward(values_of(in), c.geometry()), c.out(), dtype);
    const Tensor want_grad = tensor_of(
        reference::subsample_pad_backward(values_of(grad_out), c.geometry()), c.in, dtype);
    for (const bool aligned : {true, false}) {
      SCOPED_TRACE(fmt::format("{}, aligned: {}", name_of(dtype), aligned));
      Tensor out = poisoned(c.out(), dtype);
      Tensor grad_in = poisoned(c.in, dtype);
      subsample_pad_forward(
          stream_, shards, aligned ? upload(in) : upload_misaligned(in), c.stride, out);
      subsample_pad_backward(stream_,
                             shards,
                             aligned ? upload(grad_out) : upload_misaligned(grad_out),
                             c.stride,
                             grad_in);
      EXPECT_TRUE(same_bits(download(out), want_out));
      EXPECT_TRUE(same_bits(download(grad_in), want_grad));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         CudaSubsamplePad,
                         ::testing::Values(Case{{4, 16, 6, 6}, 32, 2},
                                           Case{{2, 8, 5, 3}, 24, 2},
                                           Case{{2, 8, 3, 3}, 16, 2},   // padding of half a pack
                                           Case{{2, 12, 3, 4}, 28, 2},  // f16: one and a half
                                           Case{{2, 3, 7, 5}, 9, 2},
                                           Case{{3, 2, 5, 7}, 2, 1},
                                           Case{{2, 8, 4, 3}, 8, 3},
                                           Case{{1, 4, 1, 1}, 8, 2},
                                           Case{{0, 4, 6, 6}, 8, 2},
                                           Case{{2, 0, 4, 4}, 4, 2}));

class CudaSubsamplePadSpecial : public testing::CudaTest {};

TEST_F(CudaSubsamplePadSpecial, NanInfinityAndSignedZeroAreCopied) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const Dtype dtype : kFloatTypes) {
    const Tensor in = tensor_of(
        std::vector<double>{std::numeric_limits<double>::quiet_NaN(), -kInf, -0.0, 0x1p-24},
        {4, 1, 1, 1},
        dtype);
    Tensor out = poisoned({4, 1, 1, 1}, dtype);
    subsample_pad_forward(stream_, Shards::single(4), upload(in), 1, out);
    EXPECT_TRUE(same_bits(download(out), in));
    subsample_pad_backward(stream_, Shards::single(4), upload(in), 1, out);
    EXPECT_TRUE(same_bits(download(out), in));
  }
}

}  // namespace
}  // namespace lockstep::kernels::subsample_pad_test
