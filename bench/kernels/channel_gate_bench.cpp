#include "bench/kernels/op_bench.h"
#include "kernels/elementwise/channel_gate.h"

namespace lockstep::bench {
namespace {

// GhostNet's largest and last.
const Cases kCases{.cpu = {kF32, {{32, 72, 28, 28}, {32, 960, 7, 7}}},
                   .cuda = {kFloatTypes, {{256, 120, 28, 28}, {256, 960, 7, 7}}}};

const Bench kForward("channel_gate_forward", kCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  const Tensor gate = t.random({t[0], t[1]}, t.dtype());
  Tensor out = t.empty(t.shape(), t.dtype());
  t.run(2 * in.nbytes() + gate.nbytes(),
        [&] { kernels::channel_gate_forward(t.stream(), t.shards(), in, gate, out); });
});

const Bench kBackward("channel_gate_backward", kCases, [](Timer& t) {
  const Tensor grad_out = t.random(t.shape(), t.dtype());
  const Tensor in = t.random(t.shape(), t.dtype());
  const Tensor gate = t.random({t[0], t[1]}, t.dtype());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  Tensor grad_gate = t.empty(gate.shape(), t.dtype());
  t.run(3 * in.nbytes() + 2 * gate.nbytes(), [&] {
    kernels::channel_gate_backward(
        t.stream(), t.shards(), {grad_out, in, gate, grad_in, grad_gate});
  });
});

}  // namespace
}  // namespace lockstep::bench
