#include "bench/kernels/convolution.h"
#include "bench/kernels/op_bench.h"
#include "kernels/conv/conv2d_fused.h"

namespace lockstep::bench {
namespace {

// ResNet-50's, in the type for which the forms are.
const Cases kCases{.cuda = {{Dtype::kF16},
                            {{256, 64, 56, 64, 3, 1},
                             {256, 64, 56, 256, 1, 1},
                             {256, 256, 56, 64, 1, 1},
                             {256, 128, 28, 128, 3, 1},
                             {256, 256, 14, 256, 3, 1},
                             {256, 1024, 14, 256, 1, 1},
                             {256, 512, 7, 512, 3, 1}}}};

Tensor random_affine(Timer& t) {
  return t.random({2, t.shards().local(), t[1]}, t.dtype());
}

void forward(Timer& t, const Tensor& affine) {
  Convolution c(t);
  Tensor sums = t.empty({2, c.shards.local(), t[3]}, Dtype::kF32);
  t.run(c.bytes(), c.flops(), [&] {
    kernels::conv2d_fused_forward(
        t.stream(),
        c.shards,
        {.in = c.in, .weight = c.weight, .params = c.params, .out = c.out},
        affine,
        sums);
  });
}

const Bench kSums("conv2d_fused_forward_sums", kCases, [](Timer& t) { forward(t, {}); });
const Bench kBoth("conv2d_fused_forward", kCases, [](Timer& t) { forward(t, random_affine(t)); });

const Bench kBackwardWeight("conv2d_fused_backward_weight", kCases, [](Timer& t) {
  Convolution c(t);
  const Tensor affine = random_affine(t);
  Tensor grad_weight = t.empty({c.shards.local(), c.weight.numel()}, Dtype::kF32);
  t.run(c.bytes(), c.flops(), [&] {
    kernels::conv2d_fused_backward_weight(
        t.stream(), c.shards, {c.in, c.out, c.weight.shape(), c.params, grad_weight}, affine);
  });
});

}  // namespace
}  // namespace lockstep::bench
