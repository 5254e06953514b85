#include "bench/kernels/op_bench.h"
#include "kernels/linear/add_bias.h"

namespace lockstep::bench {
namespace {

const Cases kCases{
    .cpu = {kF32, {{64, 1000}, {36864, 20}, {100352, 64}}},
    .cuda = {kFloatTypes, {{256, 1000}, {256, 4096}, {256, 64, 112, 112}, {256, 512, 14, 14}}}};

const Bench kForward("add_bias_forward", kCases, [](Timer& t) {
  const Tensor bias = t.random_f32({t[1]});
  Tensor values = t.random(t.shape(), t.dtype());
  t.run(2 * values.nbytes(), [&] { kernels::add_bias_forward(t.stream(), values, bias, values); });
});

const Bench kBackward("add_bias_backward", kCases, [](Timer& t) {
  const Shards shards = t.shards();
  const Tensor grad_out = t.random(t.shape(), t.dtype());
  Tensor grad_bias = t.empty({shards.local(), t[1]}, Dtype::kF32);
  t.run(grad_out.nbytes(),
        [&] { kernels::add_bias_backward(t.stream(), shards, grad_out, grad_bias); });
});

}  // namespace
}  // namespace lockstep::bench
