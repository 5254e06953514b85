#include "bench/kernels/op_bench.h"
#include "kernels/linear/add_bias.h"
#include "kernels/linear/linear.h"

namespace lockstep::bench {
namespace {

// Images, features in, features out: ConvNet's, ResNet-18's and ResNet-50's; on CPUs also a product
// that is large enough to show what the machine can do.
const Cases kLinearCases{
    .cpu = {kFloatTypes, {{32, 1568, 10}, {32, 512, 1000}, {32, 2048, 1000}, {1024, 2048, 1024}}},
    .cuda = {kFloatTypes, {{64, 1568, 10}, {256, 512, 1000}, {256, 2048, 1000}}}};

struct Layer {
  explicit Layer(Timer& t)
      : shards(t.shards()),
        in(t.random({t[0], t[1]}, t.dtype())),
        weight(t.random({t[2], t[1]}, t.dtype())),
        out(t.random({t[0], t[2]}, t.dtype())) {}

  size_t bytes() const { return in.nbytes() + weight.nbytes() + out.nbytes(); }
  int64_t flops() const { return 2 * in.shape()[0] * weight.numel(); }

  Shards shards;
  Tensor in, weight, out;
};

const Bench kLinearForward("linear_forward", kLinearCases, [](Timer& t) {
  Layer l(t);
  const Tensor bias = t.random_f32({t[2]});
  t.run(l.bytes(), l.flops(), [&] {
    kernels::linear_forward(t.stream(), l.shards, l.in, l.weight, bias, l.out);
  });
});

const Bench kLinearBackwardData("linear_backward_data", kLinearCases, [](Timer& t) {
  Layer l(t);
  t.run(l.bytes(), l.flops(), [&] {
    kernels::linear_backward_data(t.stream(), l.shards, l.out, l.weight, l.in);
  });
});

const Bench kLinearBackwardWeight("linear_backward_weight", kLinearCases, [](Timer& t) {
  Layer l(t);
  Tensor grad_weight = t.empty({l.shards.local(), l.weight.numel()}, Dtype::kF32);
  Tensor grad_bias = t.empty({l.shards.local(), t[2]}, Dtype::kF32);
  t.run(l.bytes(), l.flops(), [&] {
    kernels::linear_backward_weight(t.stream(), l.shards, l.in, l.out, grad_weight, grad_bias);
  });
});

const Cases kAddBiasCases{
    .cpu = {kF32, {{64, 1000}, {36864, 20}, {100352, 64}}},
    .cuda = {kFloatTypes, {{256, 1000}, {256, 4096}, {256, 64, 112, 112}, {256, 512, 14, 14}}}};

const Bench kAddBiasForward("add_bias_forward", kAddBiasCases, [](Timer& t) {
  const Tensor bias = t.random_f32({t[1]});
  Tensor values = t.random(t.shape(), t.dtype());
  t.run(2 * values.nbytes(), [&] { kernels::add_bias_forward(t.stream(), values, bias, values); });
});

const Bench kAddBiasBackward("add_bias_backward", kAddBiasCases, [](Timer& t) {
  const Shards shards = t.shards();
  const Tensor grad_out = t.random(t.shape(), t.dtype());
  Tensor grad_bias = t.empty({shards.local(), t[1]}, Dtype::kF32);
  t.run(grad_out.nbytes(),
        [&] { kernels::add_bias_backward(t.stream(), shards, grad_out, grad_bias); });
});

}  // namespace
}  // namespace lockstep::bench
