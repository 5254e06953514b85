#include "kernels/elementwise/concat_channels.h"

#include <tuple>

#include "tests/support/close.h"
#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::concat_channels_test {
namespace {

using testing::poisoned_tensor;
using testing::random_tensor;
using testing::rounded_to;
using testing::same_bits;

class CudaConcatChannels : public testing::CudaTestWith<std::tuple<Dtype, Shape, int64_t>> {};

TEST_P(CudaConcatChannels, HasTheBitsOfTheCpu) {
  const auto& [dtype, shape, others] = GetParam();
  const Shape of_b{shape[0], others, shape[2], shape[3]};
  const Shape of_both{shape[0], shape[1] + others, shape[2], shape[3]};
  const Shards shards = Shards::single(shape[0]);
  const Tensor a = rounded_to(dtype, random_tensor(shape, 1));
  const Tensor b = rounded_to(dtype, random_tensor(of_b, 2));
  Stream cpu;
  Tensor want = poisoned_tensor(of_both, dtype);
  concat_channels_forward(cpu, shards, a, b, want);
  for (const bool aligned : {true, false}) {
    SCOPED_TRACE(aligned);
    const auto place = [&](const Tensor& t) { return aligned ? upload(t) : upload_misaligned(t); };
    Tensor out = poisoned(of_both, dtype);
    Tensor grad_a = poisoned(shape, dtype);
    Tensor grad_b = poisoned(of_b, dtype);
    concat_channels_forward(stream_, shards, place(a), place(b), out);
    concat_channels_backward(stream_, shards, place(want), grad_a, grad_b);
    EXPECT_TRUE(same_bits(download(out), want));
    EXPECT_TRUE(same_bits(download(grad_a), a));
    EXPECT_TRUE(same_bits(download(grad_b), b));
  }
}

// Packs of 16, 8 and 4 or 2 bytes.
INSTANTIATE_TEST_SUITE_P(
    Shapes,
    CudaConcatChannels,
    ::testing::Combine(::testing::ValuesIn(testing::kFloatTypes),
                       ::testing::Values(Shape{2, 16, 3, 5}, Shape{70, 4, 2, 2}, Shape{0, 8, 2, 2}),
                       ::testing::Values(8, 4, 2, 3)));

}  // namespace
}  // namespace lockstep::kernels::concat_channels_test
