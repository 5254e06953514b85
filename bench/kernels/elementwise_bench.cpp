#include "bench/kernels/op_bench.h"
#include "kernels/elementwise/add.h"
#include "kernels/elementwise/channel_gate.h"
#include "kernels/elementwise/concat_channels.h"
#include "kernels/elementwise/copy.h"
#include "kernels/elementwise/fill.h"
#include "kernels/elementwise/gelu.h"
#include "kernels/elementwise/relu.h"
#include "kernels/elementwise/scale.h"

namespace lockstep::bench {
namespace {

const Cases kAddCases{.cpu = {kF32, {{4096}, {401408}, {25690112}}},
                      .cuda = {kFloatTypes, kResnetShapes}};

const Bench kAdd("add", kAddCases, [](Timer& t) {
  const Tensor src = t.random(t.shape(), t.dtype());
  Tensor dst = t.random(t.shape(), t.dtype());
  t.run(3 * src.nbytes(), [&] { kernels::add(t.stream(), src, dst); });
});

// From f32 to the case's type and back.
const std::vector<Dtype> kCastStored = {Dtype::kF16, Dtype::kBF16};
const Cases kCastCases{.cpu = {kCastStored, {{401408}}},
                       .cuda = {kCastStored, {{25557032}, {256, 64, 112, 112}}}};

void cast(Timer& t, Dtype from, Dtype to) {
  const Tensor src = t.random(t.shape(), from);
  Tensor dst = t.empty(t.shape(), to);
  t.run(src.nbytes() + dst.nbytes(), [&] { kernels::cast(t.stream(), src, dst); });
}

const Bench kCastNarrow("cast_from_f32", kCastCases, [](Timer& t) {
  cast(t, Dtype::kF32, t.dtype());
});
const Bench kCastWiden("cast_to_f32", kCastCases, [](Timer& t) {
  cast(t, t.dtype(), Dtype::kF32);
});

// GhostNet's largest and last.
constexpr kernels::GateForm kHard = kernels::GateForm::kHardSigmoid;
const Cases kGateCases{.cpu = {kF32, {{32, 72, 28, 28}, {32, 960, 7, 7}}},
                       .cuda = {kFloatTypes, {{256, 120, 28, 28}, {256, 960, 7, 7}}}};

const Bench kGateForward("channel_gate_forward", kGateCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  const Tensor gate = t.random({t[0], t[1]}, t.dtype());
  Tensor out = t.empty(t.shape(), t.dtype());
  t.run(2 * in.nbytes() + gate.nbytes(),
        [&] { kernels::channel_gate_forward(t.stream(), t.shards(), in, gate, kHard, out); });
});

const Bench kGateBackward("channel_gate_backward", kGateCases, [](Timer& t) {
  const Tensor grad_out = t.random(t.shape(), t.dtype());
  const Tensor in = t.random(t.shape(), t.dtype());
  const Tensor gate = t.random({t[0], t[1]}, t.dtype());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  Tensor grad_gate = t.empty(gate.shape(), t.dtype());
  t.run(3 * in.nbytes() + 2 * gate.nbytes(), [&] {
    kernels::channel_gate_backward(
        t.stream(), t.shards(), {grad_out, in, gate, kHard, grad_in, grad_gate});
  });
});

// One of two parts: GhostNet's largest and last.
const Cases kConcatCases{.cpu = {kF32, {{32, 24, 112, 112}, {32, 480, 7, 7}}},
                         .cuda = {kFloatTypes, {{256, 24, 112, 112}, {256, 480, 7, 7}}}};

Shape both(const Timer& t) {
  return {t[0], 2 * t[1], t[2], t[3]};
}

const Bench kConcatForward("concat_channels_forward", kConcatCases, [](Timer& t) {
  const Tensor a = t.random(t.shape(), t.dtype());
  const Tensor b = t.random(t.shape(), t.dtype());
  Tensor out = t.empty(both(t), t.dtype());
  t.run(2 * out.nbytes(),
        [&] { kernels::concat_channels_forward(t.stream(), t.shards(), a, b, out); });
});

const Bench kConcatBackward("concat_channels_backward", kConcatCases, [](Timer& t) {
  const Tensor grad_out = t.random(both(t), t.dtype());
  Tensor grad_a = t.empty(t.shape(), t.dtype());
  Tensor grad_b = t.empty(t.shape(), t.dtype());
  t.run(2 * grad_out.nbytes(), [&] {
    kernels::concat_channels_backward(t.stream(), t.shards(), grad_out, grad_a, grad_b);
  });
});

const Cases kCopyCases{.cpu = {kF32, {{29034}, {25557032}}}, .cuda = {kF32, {{29034}, {25557032}}}};

const Bench kCopy("copy", kCopyCases, [](Timer& t) {
  const Tensor src = t.random_f32(t.shape());
  Tensor dst = t.empty(t.shape(), Dtype::kF32);
  t.run(2 * src.nbytes(), [&] { kernels::copy(t.stream(), src, dst); });
});

const Cases kFillCases{.cpu = {kF32, {{29034}, {25557032}}}, .cuda = {kFloatTypes, {{25557032}}}};

const Bench kFill("fill", kFillCases, [](Timer& t) {
  Tensor out = t.empty(t.shape(), t.dtype());
  t.run(out.nbytes(), [&] { kernels::fill(t.stream(), 1, out); });
});

const Cases kGeluCases{.cpu = {kFloatTypes, {{4096}, {401408}, {25690112}}},
                       .cuda = {kFloatTypes, kResnetShapes}};

void gelu_forward(Timer& t, kernels::GeluForm form) {
  const Tensor in = t.random(t.shape(), t.dtype());
  Tensor out = t.empty(t.shape(), t.dtype());
  t.run(2 * in.nbytes(), [&] { kernels::gelu_forward(t.stream(), in, form, out); });
}
void gelu_backward(Timer& t, kernels::GeluForm form) {
  const Tensor in = t.random(t.shape(), t.dtype());
  const Tensor grad_out = t.random(t.shape(), t.dtype());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  t.run(3 * in.nbytes(), [&] { kernels::gelu_backward(t.stream(), in, grad_out, form, grad_in); });
}

const Bench kGeluForward("gelu_forward", kGeluCases, [](Timer& t) {
  gelu_forward(t, kernels::GeluForm::kErf);
});
const Bench kGeluBackward("gelu_backward", kGeluCases, [](Timer& t) {
  gelu_backward(t, kernels::GeluForm::kErf);
});
const Bench kGeluTanhForward("gelu_tanh_forward", kGeluCases, [](Timer& t) {
  gelu_forward(t, kernels::GeluForm::kTanh);
});
const Bench kGeluTanhBackward("gelu_tanh_backward", kGeluCases, [](Timer& t) {
  gelu_backward(t, kernels::GeluForm::kTanh);
});

const Cases kReluCases{.cpu = {kFloatTypes, {{4096}, {401408}, {25690112}}},
                       .cuda = {kFloatTypes, kResnetShapes}};

const Bench kReluForward("relu_forward", kReluCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  Tensor out = t.empty(t.shape(), t.dtype());
  t.run(2 * in.nbytes(), [&] { kernels::relu_forward(t.stream(), in, out); });
});

const Bench kReluBackward("relu_backward", kReluCases, [](Timer& t) {
  const Tensor out = t.random(t.shape(), t.dtype());
  const Tensor grad_out = t.random(t.shape(), t.dtype());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  t.run(3 * out.nbytes(), [&] { kernels::relu_backward(t.stream(), out, grad_out, grad_in); });
});

const Cases kScaleCases{.cpu = {kF32, {{401408}, {25557032}}}, .cuda = {kF32, {{25557032}}}};

const Bench kScale("scale", kScaleCases, [](Timer& t) {
  Tensor values = t.random_f32(t.shape());
  t.run(2 * values.nbytes(), [&] { kernels::scale(t.stream(), -1, values); });
});

}  // namespace
}  // namespace lockstep::bench
