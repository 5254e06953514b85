#include "bench/kernels/convolution.h"
#include "kernels/conv/depthwise_conv2d.h"

namespace lockstep::bench {
namespace {

// GhostNet's: images, C, height and width, R and S, stride.
const Cases kCases{
    .cpu = {kFloatTypes, {{8, 16, 112, 3, 1}, {8, 72, 56, 5, 2}, {8, 480, 14, 3, 1}}},
    .cuda = {kFloatTypes, {{256, 16, 112, 3, 1}, {256, 72, 56, 3, 1}, {256, 480, 14, 3, 1}}}};

struct Problem {
  explicit Problem(Timer& t)
      : shards(t.shards()),
        params(same_size(t[3], t[4])),
        in(t.random({t[0], t[1], t[2], t[2]}, t.dtype())),
        weight(t.random({t[1], 1, t[3], t[3]}, t.dtype())),
        out(t.random(kernels::depthwise_conv2d_output_shape(in.shape(), weight.shape(), params),
                     t.dtype())) {}

  size_t bytes() const { return in.nbytes() + out.nbytes(); }

  Shards shards;
  kernels::Conv2dParams params;
  Tensor in, weight, out;
};

const Bench kForward("depthwise_conv2d_forward", kCases, [](Timer& t) {
  Problem p(t);
  t.run(p.bytes(), [&] {
    kernels::depthwise_conv2d_forward(t.stream(), p.shards, p.in, p.weight, p.params, p.out);
  });
});

const Bench kBackwardData("depthwise_conv2d_backward_data", kCases, [](Timer& t) {
  Problem p(t);
  t.run(p.bytes(), [&] {
    kernels::depthwise_conv2d_backward_data(t.stream(), p.shards, p.out, p.weight, p.params, p.in);
  });
});

const Bench kBackwardWeight("depthwise_conv2d_backward_weight", kCases, [](Timer& t) {
  Problem p(t);
  Tensor leaves = t.empty({p.shards.local(), p.weight.numel()}, Dtype::kF32);
  t.run(p.bytes(), [&] {
    kernels::depthwise_conv2d_backward_weight(
        t.stream(), p.shards, {p.in, p.out, p.weight.shape(), p.params, leaves});
  });
});

}  // namespace
}  // namespace lockstep::bench
