#include "bench/kernels/op_bench.h"
#include "kernels/pool/avg_pool2d.h"

namespace lockstep::bench {
namespace {

// ResNet-18's and -50's.
const Cases kCases{.cpu = {kF32, {{32, 512, 7, 7}, {8, 2048, 7, 7}}},
                   .cuda = {kFloatTypes, {{256, 2048, 7, 7}}}};

const Bench kForward("global_avg_pool_forward", kCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  Tensor out = t.empty({t[0], t[1]}, t.dtype());
  t.run(in.nbytes() + out.nbytes(),
        [&] { kernels::global_avg_pool_forward(t.stream(), t.shards(), in, out); });
});

const Bench kBackward("global_avg_pool_backward", kCases, [](Timer& t) {
  const Tensor grad_out = t.random({t[0], t[1]}, t.dtype());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  t.run(grad_in.nbytes() + grad_out.nbytes(),
        [&] { kernels::global_avg_pool_backward(t.stream(), t.shards(), grad_out, grad_in); });
});

}  // namespace
}  // namespace lockstep::bench
