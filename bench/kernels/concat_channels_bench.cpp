#include "bench/kernels/op_bench.h"
#include "kernels/elementwise/concat_channels.h"

namespace lockstep::bench {
namespace {

// One of two parts: GhostNet's largest and last.
const Cases kCases{.cpu = {kF32, {{32, 24, 112, 112}, {32, 480, 7, 7}}},
                   .cuda = {kFloatTypes, {{256, 24, 112, 112}, {256, 480, 7, 7}}}};

Shape both(const Timer& t) {
  return {t[0], 2 * t[1], t[2], t[3]};
}

const Bench kForward("concat_channels_forward", kCases, [](Timer& t) {
  const Tensor a = t.random(t.shape(), t.dtype());
  const Tensor b = t.random(t.shape(), t.dtype());
  Tensor out = t.empty(both(t), t.dtype());
  t.run(2 * out.nbytes(),
        [&] { kernels::concat_channels_forward(t.stream(), t.shards(), a, b, out); });
});

const Bench kBackward("concat_channels_backward", kCases, [](Timer& t) {
  const Tensor grad_out = t.random(both(t), t.dtype());
  Tensor grad_a = t.empty(t.shape(), t.dtype());
  Tensor grad_b = t.empty(t.shape(), t.dtype());
  t.run(2 * grad_out.nbytes(), [&] {
    kernels::concat_channels_backward(t.stream(), t.shards(), grad_out, grad_a, grad_b);
  });
});

}  // namespace
}  // namespace lockstep::bench
