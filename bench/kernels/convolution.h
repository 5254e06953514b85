// Cases and tensors that benchmarks of convolutions share.
#pragma once

#include "bench/kernels/op_bench.h"
#include "kernels/conv2d.h"

namespace lockstep::bench {

// The tensors of extents (images, C, height and width, K, R and S, stride), random; pad keeps the
// size at stride 1.
struct Convolution {
  explicit Convolution(Timer& t)
      : shards(t.shards()),
        params{.stride_h = static_cast<int>(t[5]),
               .stride_w = static_cast<int>(t[5]),
               .pad_h = static_cast<int>(t[4] / 2),
               .pad_w = static_cast<int>(t[4] / 2)},
        in(t.random({t[0], t[1], t[2], t[2]}, t.dtype())),
        weight(t.random({t[3], t[1], t[4], t[4]}, t.dtype())),
        out(t.random(kernels::conv2d_output_shape(in.shape(), weight.shape(), params), t.dtype())) {
  }

  size_t bytes() const { return in.nbytes() + weight.nbytes() + out.nbytes(); }
  int64_t flops() const { return 2 * out.numel() * weight.shape().stride0(); }

  Shards shards;
  kernels::Conv2dParams params;
  Tensor in, weight, out;
};

}  // namespace lockstep::bench
