#include "bench/kernels/convolution.h"
#include "bench/kernels/op_bench.h"
#include "kernels/conv/conv2d.h"

namespace lockstep::bench {
namespace {

const Cases kCases{
    .cpu = {kFloatTypes,
            {{32, 1, 28, 16, 5, 1},        // ConvNet
             {32, 16, 14, 32, 5, 1},       // ConvNet
             {32, 3, 32, 16, 3, 1},        // ResNet-20, CIFAR
             {32, 64, 8, 64, 3, 1},        // ResNet-20, CIFAR
             {4, 3, 224, 64, 7, 2},        // ResNet-18 and -50
             {4, 64, 56, 64, 3, 1},        // ResNet-18 and -50
             {4, 128, 28, 128, 3, 1},      // ResNet-18
             {4, 64, 56, 256, 1, 1},       // ResNet-50
             {4, 256, 14, 256, 3, 1},      // ResNet-50
             {4, 1024, 14, 2048, 1, 2}}},  // ResNet-50
    .cuda = {kFloatTypes,
             {{64, 1, 28, 16, 5, 1},    // ConvNet
              {64, 16, 14, 32, 5, 1},   // ConvNet
              {256, 3, 224, 64, 7, 2},  // ResNet-50: the stem, then a few of each stage
              {256, 64, 56, 64, 3, 1},
              {256, 64, 56, 256, 1, 1},
              {256, 256, 56, 64, 1, 1},
              {256, 128, 56, 128, 3, 2},
              {256, 128, 28, 128, 3, 1},
              {256, 256, 56, 512, 1, 2},
              {256, 256, 14, 256, 3, 1},
              {256, 1024, 14, 256, 1, 1},
              {256, 512, 7, 512, 3, 1},
              {256, 1024, 14, 2048, 1, 2}}}};

// ConvNet's alone have one.
bool has_bias(const Timer& t) {
  return t[4] == 5;
}

const Bench kForward("conv2d_forward", kCases, [](Timer& t) {
  Convolution c(t);
  const Tensor bias = has_bias(t) ? t.random_f32({t[3]}) : Tensor();
  t.run(c.bytes(), c.flops(), [&] {
    kernels::conv2d_forward(t.stream(), c.shards, {c.in, c.weight, bias, c.params, c.out});
  });
});

const Bench kBackwardData("conv2d_backward_data", kCases, [](Timer& t) {
  Convolution c(t);
  t.run(c.bytes(), c.flops(), [&] {
    kernels::conv2d_backward_data(t.stream(), c.shards, c.out, c.weight, c.params, c.in);
  });
});

const Bench kBackwardWeight("conv2d_backward_weight", kCases, [](Timer& t) {
  Convolution c(t);
  Tensor grad_weight = t.empty({c.shards.local(), c.weight.numel()}, Dtype::kF32);
  Tensor grad_bias = has_bias(t) ? t.empty({c.shards.local(), t[3]}, Dtype::kF32) : Tensor();
  const Shape& weights = c.weight.shape();
  t.run(c.bytes(), c.flops(), [&] {
    kernels::conv2d_backward_weight(
        t.stream(), c.shards, {c.in, c.out, weights, c.params, grad_weight, &grad_bias});
  });
});

}  // namespace
}  // namespace lockstep::bench
