#include "bench/kernels/op_bench.h"
#include "kernels/conv/conv2d.h"
#include "kernels/conv/conv2d_fused.h"
#include "kernels/conv/depthwise_conv2d.h"

namespace lockstep::bench {
namespace {

// The parameters of a square kernel that keeps the size at stride 1.
kernels::Conv2dParams same_size(int64_t kernel, int64_t stride, int64_t groups) {
  const int pad = static_cast<int>(kernel / 2);
  return {.stride_h = static_cast<int>(stride),
          .stride_w = static_cast<int>(stride),
          .pad_h = pad,
          .pad_w = pad,
          .groups = static_cast<int>(groups)};
}

struct Convolution {
  using OutputShape = Shape(const Shape& in,
                            const Shape& weight,
                            const kernels::Conv2dParams& params);

  // Makes a problem of square images and a square kernel, with random values.
  Convolution(Timer& t, const Shape& weights, int64_t stride, OutputShape output_shape)
      : shards(t.shards()),
        params(same_size(weights[2], stride, t[1] / weights[1])),
        in(t.random({t[0], t[1], t[2], t[2]}, t.dtype())),
        weight(t.random(weights, t.dtype())),
        out(t.random(output_shape(in.shape(), weights, params), t.dtype())) {}

  size_t image_bytes() const { return in.nbytes() + out.nbytes(); }
  size_t bytes() const { return image_bytes() + weight.nbytes(); }
  int64_t flops() const { return 2 * out.numel() * weight.shape().stride0(); }

  Shards shards;
  kernels::Conv2dParams params;
  Tensor in, weight, out;
};

// Extents: images, C, height and width, K, R and S, stride, and optionally groups.
Convolution dense(Timer& t) {
  const int64_t groups = t.size() > 6 ? t[6] : 1;
  return {t, {t[3], t[1] / groups, t[4], t[4]}, t[5], kernels::conv2d_output_shape};
}

// Extents: images, C, height and width, R and S, stride.
Convolution depthwise(Timer& t) {
  return {t, {t[1], 1, t[3], t[3]}, t[4], kernels::depthwise_conv2d_output_shape};
}

const Cases kConvCases{
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
             {4, 1024, 14, 2048, 1, 2},    // ResNet-50
             {4, 128, 56, 128, 3, 1, 32},  // ResNeXt-50, from here on
             {4, 256, 56, 256, 3, 2, 32},
             {4, 1024, 7, 1024, 3, 1, 32}}},
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
              {256, 1024, 14, 2048, 1, 2},
              {256, 128, 56, 128, 3, 1, 32},  // ResNeXt-50, from here on
              {256, 256, 56, 256, 3, 2, 32},
              {256, 1024, 7, 1024, 3, 1, 32}}}};

// ConvNet's alone have one.
bool has_bias(const Timer& t) {
  return t[4] == 5;
}

const Bench kConvForward("conv2d_forward", kConvCases, [](Timer& t) {
  Convolution c = dense(t);
  const Tensor bias = has_bias(t) ? t.random_f32({t[3]}) : Tensor();
  t.run(c.bytes(), c.flops(), [&] {
    kernels::conv2d_forward(t.stream(), c.shards, {c.in, c.weight, bias, c.params, c.out});
  });
});

const Bench kConvBackwardData("conv2d_backward_data", kConvCases, [](Timer& t) {
  Convolution c = dense(t);
  t.run(c.bytes(), c.flops(), [&] {
    kernels::conv2d_backward_data(t.stream(), c.shards, c.out, c.weight, c.params, c.in);
  });
});

const Bench kConvBackwardWeight("conv2d_backward_weight", kConvCases, [](Timer& t) {
  Convolution c = dense(t);
  Tensor grad_weight = t.empty({c.shards.local(), c.weight.numel()}, Dtype::kF32);
  Tensor grad_bias = has_bias(t) ? t.empty({c.shards.local(), t[3]}, Dtype::kF32) : Tensor();
  const Shape& weights = c.weight.shape();
  t.run(c.bytes(), c.flops(), [&] {
    kernels::conv2d_backward_weight(
        t.stream(), c.shards, {c.in, c.out, weights, c.params, grad_weight, &grad_bias});
  });
});

// ResNet-50's, in the type for which the forms are.
const Cases kFusedCases{.cuda = {{Dtype::kF16},
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

void fused_forward(Timer& t, const Tensor& affine) {
  Convolution c = dense(t);
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

const Bench kFusedSums("conv2d_fused_forward_sums", kFusedCases, [](Timer& t) {
  fused_forward(t, {});
});
const Bench kFusedForward("conv2d_fused_forward", kFusedCases, [](Timer& t) {
  fused_forward(t, random_affine(t));
});

const Bench kFusedBackwardWeight("conv2d_fused_backward_weight", kFusedCases, [](Timer& t) {
  Convolution c = dense(t);
  const Tensor affine = random_affine(t);
  Tensor grad_weight = t.empty({c.shards.local(), c.weight.numel()}, Dtype::kF32);
  t.run(c.bytes(), c.flops(), [&] {
    kernels::conv2d_fused_backward_weight(
        t.stream(), c.shards, {c.in, c.out, c.weight.shape(), c.params, grad_weight}, affine);
  });
});

// GhostNet's.
const Cases kDepthwiseCases{
    .cpu = {kFloatTypes, {{8, 16, 112, 3, 1}, {8, 72, 56, 5, 2}, {8, 480, 14, 3, 1}}},
    .cuda = {kFloatTypes, {{256, 16, 112, 3, 1}, {256, 72, 56, 3, 1}, {256, 480, 14, 3, 1}}}};

const Bench kDepthwiseForward("depthwise_conv2d_forward", kDepthwiseCases, [](Timer& t) {
  Convolution c = depthwise(t);
  t.run(c.image_bytes(), [&] {
    kernels::depthwise_conv2d_forward(t.stream(), c.shards, c.in, c.weight, c.params, c.out);
  });
});

const Bench kDepthwiseBackwardData("depthwise_conv2d_backward_data", kDepthwiseCases, [](Timer& t) {
  Convolution c = depthwise(t);
  t.run(c.image_bytes(), [&] {
    kernels::depthwise_conv2d_backward_data(t.stream(), c.shards, c.out, c.weight, c.params, c.in);
  });
});

const Bench kDepthwiseBackwardWeight(
    "depthwise_conv2d_backward_weight", kDepthwiseCases, [](Timer& t) {
      Convolution c = depthwise(t);
      Tensor leaves = t.empty({c.shards.local(), c.weight.numel()}, Dtype::kF32);
      t.run(c.image_bytes(), [&] {
        kernels::depthwise_conv2d_backward_weight(
            t.stream(), c.shards, {c.in, c.out, c.weight.shape(), c.params, leaves});
      });
    });

}  // namespace
}  // namespace lockstep::bench
