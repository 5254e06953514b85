#include "bench/kernels/op_bench.h"
#include "kernels/pool/max_pool2d.h"

namespace lockstep::bench {
namespace {

constexpr kernels::MaxPool2dParams k2x2 = {2, 2, 2, 2, 0, 0};
constexpr kernels::MaxPool2dParams k3x3 = {3, 3, 2, 2, 1, 1};
// ResNet's 3x3 behind its stem, ConvNet's 2x2.
const Cases kResnet{.cpu = {kF32, {{8, 64, 112, 112}}},
                    .cuda = {kFloatTypes, {{256, 64, 112, 112}}}};
const Cases kConvnet{.cpu = {kF32, {{32, 16, 28, 28}, {32, 32, 14, 14}}},
                     .cuda = {kFloatTypes, {{64, 16, 28, 28}, {64, 32, 14, 14}}}};

struct Pooling {
  Pooling(Timer& t, const kernels::MaxPool2dParams& params)
      : in(t.random(t.shape(), t.dtype())),
        out(t.empty(kernels::max_pool2d_output_shape(t.shape(), params), t.dtype())),
        winner(t.empty(out.shape(), Dtype::kU8)) {}

  size_t bytes() const { return in.nbytes() + out.nbytes() + winner.nbytes(); }

  Tensor in, out, winner;
};

void forward(Timer& t, const kernels::MaxPool2dParams& params) {
  Pooling p(t, params);
  t.run(p.bytes(), [&] {
    kernels::max_pool2d_forward(t.stream(), t.shards(), p.in, params, p.out, p.winner);
  });
}

void backward(Timer& t, const kernels::MaxPool2dParams& params) {
  Pooling p(t, params);
  kernels::max_pool2d_forward(t.stream(), t.shards(), p.in, params, p.out, p.winner);
  t.run(p.bytes(), [&] {
    kernels::max_pool2d_backward(t.stream(), t.shards(), p.out, p.winner, params, p.in);
  });
}

const Bench kForward("max_pool2d_forward", kResnet, [](Timer& t) { forward(t, k3x3); });
const Bench kBackward("max_pool2d_backward", kResnet, [](Timer& t) { backward(t, k3x3); });
const Bench kForward2x2("max_pool2d_forward_2x2", kConvnet, [](Timer& t) { forward(t, k2x2); });
const Bench kBackward2x2("max_pool2d_backward_2x2", kConvnet, [](Timer& t) { backward(t, k2x2); });

}  // namespace
}  // namespace lockstep::bench
