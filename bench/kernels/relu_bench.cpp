#include "bench/kernels/op_bench.h"
#include "kernels/elementwise/relu.h"

namespace lockstep::bench {
namespace {

const Cases kCases{.cpu = {kFloatTypes, {{4096}, {401408}, {25690112}}},
                   .cuda = {kFloatTypes, kResnetShapes}};

const Bench kForward("relu_forward", kCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  Tensor out = t.empty(t.shape(), t.dtype());
  t.run(2 * in.nbytes(), [&] { kernels::relu_forward(t.stream(), in, out); });
});

const Bench kBackward("relu_backward", kCases, [](Timer& t) {
  const Tensor out = t.random(t.shape(), t.dtype());
  const Tensor grad_out = t.random(t.shape(), t.dtype());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  t.run(3 * out.nbytes(), [&] { kernels::relu_backward(t.stream(), out, grad_out, grad_in); });
});

}  // namespace
}  // namespace lockstep::bench
