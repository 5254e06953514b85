#include "bench/kernels/op_bench.h"
#include "kernels/linear/linear.h"

namespace lockstep::bench {
namespace {

// Images, features in, features out: ConvNet's, ResNet-18's and ResNet-50's.
const Cases kCases{.cpu = {kFloatTypes, {{32, 1568, 10}, {32, 512, 1000}, {32, 2048, 1000}}},
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

const Bench kForward("linear_forward", kCases, [](Timer& t) {
  Layer l(t);
  const Tensor bias = t.random_f32({t[2]});
  t.run(l.bytes(), l.flops(), [&] {
    kernels::linear_forward(t.stream(), l.shards, l.in, l.weight, bias, l.out);
  });
});

const Bench kBackwardData("linear_backward_data", kCases, [](Timer& t) {
  Layer l(t);
  t.run(l.bytes(), l.flops(), [&] {
    kernels::linear_backward_data(t.stream(), l.shards, l.out, l.weight, l.in);
  });
});

const Bench kBackwardWeight("linear_backward_weight", kCases, [](Timer& t) {
  Layer l(t);
  Tensor grad_weight = t.empty({l.shards.local(), l.weight.numel()}, Dtype::kF32);
  Tensor grad_bias = t.empty({l.shards.local(), t[2]}, Dtype::kF32);
  t.run(l.bytes(), l.flops(), [&] {
    kernels::linear_backward_weight(t.stream(), l.shards, l.in, l.out, grad_weight, grad_bias);
  });
});

}  // namespace
}  // namespace lockstep::bench
