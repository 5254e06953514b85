#include "bench/kernels/op_bench.h"
#include "kernels/pool/avg_pool2d.h"

namespace lockstep::bench {
namespace {

// AlexNet's and VGG's last maps of images of 256 pixels, where windows overlap: from one pixel more
// than comes out.
const Cases kCases{.cpu = {kF32, {{32, 256, 7, 7}, {32, 512, 8, 8}}},
                   .cuda = {kFloatTypes, {{256, 512, 8, 8}}}};

Shape pooled(const Timer& t) {
  return {t[0], t[1], t[2] - 1, t[3] - 1};
}

const Bench kForward("adaptive_avg_pool2d_forward", kCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  Tensor out = t.empty(pooled(t), t.dtype());
  t.run(in.nbytes() + out.nbytes(),
        [&] { kernels::adaptive_avg_pool2d_forward(t.stream(), t.shards(), in, out); });
});

const Bench kBackward("adaptive_avg_pool2d_backward", kCases, [](Timer& t) {
  const Tensor grad_out = t.random(pooled(t), t.dtype());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  t.run(grad_in.nbytes() + grad_out.nbytes(),
        [&] { kernels::adaptive_avg_pool2d_backward(t.stream(), t.shards(), grad_out, grad_in); });
});

}  // namespace
}  // namespace lockstep::bench
