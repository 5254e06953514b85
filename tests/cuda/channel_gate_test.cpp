#include "kernels/elementwise/channel_gate.h"

#include <limits>
#include <tuple>

#include "tests/support/channel_gate_case.h"
#include "tests/support/close_sum.h"
#include "tests/support/cuda_test.h"

namespace lockstep::kernels::channel_gate_test {
namespace {

using testing::ChannelGateCase;
using testing::close_sum;
using testing::kFloatTypes;
using testing::same_bits;
using testing::tensor_of;

class CudaChannelGate : public testing::CudaTestWith<std::tuple<Dtype, Shape, GateForm>> {};

TEST_P(CudaChannelGate, HasTheBitsOfTheCpuAndMatchesReference) {
  const auto& [dtype, shape, form] = GetParam();
  const ChannelGateCase gating(shape, dtype, form);
  Stream cpu;
  const auto want = gating.run(cpu);
  for (const bool aligned : {true, false}) {
    SCOPED_TRACE(aligned);
    const auto place = [&](const Tensor& t) { return aligned ? upload(t) : upload_misaligned(t); };
    const Tensor in = place(gating.in);
    const Tensor gate = place(gating.gate);
    Tensor out = poisoned(shape, dtype);
    Tensor grad_in = poisoned(shape, dtype);
    Tensor grad_gate = poisoned(gate.shape(), dtype);
    channel_gate_forward(stream_, gating.shards(), in, gate, form, out);
    channel_gate_backward(
        stream_, gating.shards(), {place(gating.grad_out), in, gate, form, grad_in, grad_gate});
    EXPECT_TRUE(same_bits(download(out), want.out));
    EXPECT_TRUE(same_bits(download(grad_in), want.grad_in));
    EXPECT_TRUE(same_bits(download(grad_gate), want.grad_gate));
    const auto exact = gating.reference_gradients();
    EXPECT_TRUE(close_sum(download(grad_gate), exact.gate, gating.pixels()));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaChannelGate,
                         ::testing::Combine(::testing::ValuesIn(kFloatTypes),
                                            ::testing::ValuesIn(testing::kGatedShapes),
                                            ::testing::ValuesIn(testing::kGateForms)));

class CudaChannelGateSpecial : public testing::CudaTest {};

TEST_F(CudaChannelGateSpecial, EndsOfTheSlopeAndNan) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const Dtype dtype : kFloatTypes) {
    const Tensor gate = upload(tensor_of(std::vector{-4.0, -3.0, 3.0, kNan, 0.0}, {1, 5}, dtype));
    const Tensor in = upload(tensor_of(std::vector<double>(5, 6), {1, 5, 1, 1}, dtype));
    Tensor out = poisoned({1, 5, 1, 1}, dtype);
    Tensor grad_in = poisoned({1, 5, 1, 1}, dtype);
    Tensor grad_gate = poisoned({1, 5}, dtype);
    constexpr GateForm kHard = GateForm::kHardSigmoid;
    channel_gate_forward(stream_, Shards::single(1), in, gate, kHard, out);
    channel_gate_backward(stream_, Shards::single(1), {in, in, gate, kHard, grad_in, grad_gate});
    const std::vector<double> want = {0, 0, 6, kNan, 3};
    const std::vector<double> want_gate = {0, 0, 0, 0, 6};
    EXPECT_TRUE(testing::close(testing::floats_of(download(out)), want, {}));
    EXPECT_TRUE(testing::close(testing::floats_of(download(grad_in)), want, {}));
    EXPECT_TRUE(testing::close(testing::floats_of(download(grad_gate)), want_gate, {}));
  }
}

}  // namespace
}  // namespace lockstep::kernels::channel_gate_test
