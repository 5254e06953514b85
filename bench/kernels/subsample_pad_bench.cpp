#include "bench/kernels/op_bench.h"
#include "kernels/pool/subsample_pad.h"

namespace lockstep::bench {
namespace {

// ResNet-20's shortcuts: to twice as many channels on a quarter of the pixels.
const Cases kCases{
    .cpu = {kF32, {{128, 16, 32, 32}, {128, 32, 16, 16}}},
    .cuda = {kFloatTypes, {{128, 16, 32, 32}, {1024, 16, 32, 32}, {1024, 32, 16, 16}}}};

Shape shortcut(const Timer& t) {
  return kernels::subsample_pad_output_shape(t.shape(), 2 * t[1], 2);
}

const Bench kForward("subsample_pad_forward", kCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  Tensor out = t.empty(shortcut(t), t.dtype());
  t.run(in.nbytes() / 4 + out.nbytes(),
        [&] { kernels::subsample_pad_forward(t.stream(), t.shards(), in, 2, out); });
});

const Bench kBackward("subsample_pad_backward", kCases, [](Timer& t) {
  const Tensor grad_out = t.random(shortcut(t), t.dtype());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  t.run(grad_in.nbytes() + grad_out.nbytes() / 2,
        [&] { kernels::subsample_pad_backward(t.stream(), t.shards(), grad_out, 2, grad_in); });
});

}  // namespace
}  // namespace lockstep::bench
