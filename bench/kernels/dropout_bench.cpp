#include "bench/kernels/op_bench.h"
#include "kernels/random/dropout.h"

namespace lockstep::bench {
namespace {

const Cases kCases{.cpu = {kF32, {{64, 50}, {64, 4096}, {64, 50177}}},
                   .cuda = {kFloatTypes, {{256, 4096}, {256, 50177}, {256, 256, 56, 56}}}};

const Bench kForward("dropout_forward", kCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  const Tensor images = Tensor::zeros({t[0]}, Dtype::kI64, t.stream().device());
  Tensor out = t.empty(t.shape(), t.dtype());
  t.run(2 * in.nbytes(), [&] { kernels::dropout_forward(t.stream(), in, images, {}, out); });
});

const Bench kBackward("dropout_backward", kCases, [](Timer& t) {
  const Tensor grad_out = t.random(t.shape(), t.dtype());
  const Tensor images = Tensor::zeros({t[0]}, Dtype::kI64, t.stream().device());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  t.run(2 * grad_out.nbytes(),
        [&] { kernels::dropout_backward(t.stream(), grad_out, images, {}, grad_in); });
});

}  // namespace
}  // namespace lockstep::bench
