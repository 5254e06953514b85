#include "bench/kernels/op_bench.h"
#include "kernels/pool/avg_pool2d.h"
#include "kernels/pool/max_pool2d.h"
#include "kernels/pool/subsample_pad.h"

namespace lockstep::bench {
namespace {

constexpr kernels::MaxPool2dParams k2x2 = {2, 2, 2, 2, 0, 0};
constexpr kernels::MaxPool2dParams k3x3 = {3, 3, 2, 2, 1, 1};
// ResNet's 3x3 after its stem, ConvNet's 2x2.
const Cases kMaxPoolResnet{.cpu = {kF32, {{8, 64, 112, 112}}},
                           .cuda = {kFloatTypes, {{256, 64, 112, 112}}}};
const Cases kMaxPoolConvnet{.cpu = {kF32, {{32, 16, 28, 28}, {32, 32, 14, 14}}},
                            .cuda = {kFloatTypes, {{64, 16, 28, 28}, {64, 32, 14, 14}}}};

struct MaxPool {
  MaxPool(Timer& t, const kernels::MaxPool2dParams& params)
      : in(t.random(t.shape(), t.dtype())),
        out(t.empty(kernels::max_pool2d_output_shape(t.shape(), params), t.dtype())),
        winner(t.empty(out.shape(), Dtype::kU8)) {}

  size_t bytes() const { return in.nbytes() + out.nbytes() + winner.nbytes(); }

  Tensor in, out, winner;
};

void max_pool_forward(Timer& t, const kernels::MaxPool2dParams& params) {
  MaxPool p(t, params);
  t.run(p.bytes(), [&] {
    kernels::max_pool2d_forward(t.stream(), t.shards(), p.in, params, p.out, p.winner);
  });
}

void max_pool_backward(Timer& t, const kernels::MaxPool2dParams& params) {
  MaxPool p(t, params);
  kernels::max_pool2d_forward(t.stream(), t.shards(), p.in, params, p.out, p.winner);
  t.run(p.bytes(), [&] {
    kernels::max_pool2d_backward(t.stream(), t.shards(), p.out, p.winner, params, p.in);
  });
}

const Bench kMaxPoolForward("max_pool2d_forward", kMaxPoolResnet, [](Timer& t) {
  max_pool_forward(t, k3x3);
});
const Bench kMaxPoolBackward("max_pool2d_backward", kMaxPoolResnet, [](Timer& t) {
  max_pool_backward(t, k3x3);
});
const Bench kMaxPoolForward2x2("max_pool2d_forward_2x2", kMaxPoolConvnet, [](Timer& t) {
  max_pool_forward(t, k2x2);
});
const Bench kMaxPoolBackward2x2("max_pool2d_backward_2x2", kMaxPoolConvnet, [](Timer& t) {
  max_pool_backward(t, k2x2);
});

// ResNet-18's and -50's.
const Cases kGlobalAvgPoolCases{.cpu = {kF32, {{32, 512, 7, 7}, {8, 2048, 7, 7}}},
                                .cuda = {kFloatTypes, {{256, 2048, 7, 7}}}};

const Bench kGlobalAvgPoolForward("global_avg_pool_forward", kGlobalAvgPoolCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  Tensor out = t.empty({t[0], t[1]}, t.dtype());
  t.run(in.nbytes() + out.nbytes(),
        [&] { kernels::global_avg_pool_forward(t.stream(), t.shards(), in, out); });
});

const Bench kGlobalAvgPoolBackward("global_avg_pool_backward", kGlobalAvgPoolCases, [](Timer& t) {
  const Tensor grad_out = t.random({t[0], t[1]}, t.dtype());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  t.run(grad_in.nbytes() + grad_out.nbytes(),
        [&] { kernels::global_avg_pool_backward(t.stream(), t.shards(), grad_out, grad_in); });
});

// AlexNet's and VGG's last maps of images of 256 pixels, where windows overlap: from one pixel more
// than comes out.
const Cases kAdaptiveAvgPoolCases{.cpu = {kF32, {{32, 256, 7, 7}, {32, 512, 8, 8}}},
                                  .cuda = {kFloatTypes, {{256, 512, 8, 8}}}};

Shape pooled(const Timer& t) {
  return {t[0], t[1], t[2] - 1, t[3] - 1};
}

const Bench kAdaptiveAvgPoolForward(
    "adaptive_avg_pool2d_forward", kAdaptiveAvgPoolCases, [](Timer& t) {
      const Tensor in = t.random(t.shape(), t.dtype());
      Tensor out = t.empty(pooled(t), t.dtype());
      t.run(in.nbytes() + out.nbytes(),
            [&] { kernels::adaptive_avg_pool2d_forward(t.stream(), t.shards(), in, out); });
    });

const Bench kAdaptiveAvgPoolBackward("adaptive_avg_pool2d_backward",
                                     kAdaptiveAvgPoolCases,
                                     [](Timer& t) {
                                       const Tensor grad_out = t.random(pooled(t), t.dtype());
                                       Tensor grad_in = t.empty(t.shape(), t.dtype());
                                       t.run(grad_in.nbytes() + grad_out.nbytes(), [&] {
                                         kernels::adaptive_avg_pool2d_backward(
                                             t.stream(), t.shards(), grad_out, grad_in);
                                       });
                                     });

// ResNet-20's shortcuts: to twice as many channels on a quarter of the pixels.
const Cases kSubsampleCases{
    .cpu = {kF32, {{128, 16, 32, 32}, {128, 32, 16, 16}}},
    .cuda = {kFloatTypes, {{128, 16, 32, 32}, {1024, 16, 32, 32}, {1024, 32, 16, 16}}}};

Shape shortcut(const Timer& t) {
  return kernels::subsample_pad_output_shape(t.shape(), 2 * t[1], 2);
}

const Bench kSubsampleForward("subsample_pad_forward", kSubsampleCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  Tensor out = t.empty(shortcut(t), t.dtype());
  t.run(in.nbytes() / 4 + out.nbytes(),
        [&] { kernels::subsample_pad_forward(t.stream(), t.shards(), in, 2, out); });
});

const Bench kSubsampleBackward("subsample_pad_backward", kSubsampleCases, [](Timer& t) {
  const Tensor grad_out = t.random(shortcut(t), t.dtype());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  t.run(grad_in.nbytes() + grad_out.nbytes() / 2,
        [&] { kernels::subsample_pad_backward(t.stream(), t.shards(), grad_out, 2, grad_in); });
});

}  // namespace
}  // namespace lockstep::bench
