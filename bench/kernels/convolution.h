// Cases and tensors that benchmarks of convolutions share.
#pragma once

#include "bench/kernels/op_bench.h"
#include "kernels/conv/conv2d.h"

namespace lockstep::bench {

// The parameters of a square kernel that keeps the size at stride 1.
inline kernels::Conv2dParams same_size(int64_t kernel, int64_t stride) {
  const int pad = static_cast<int>(kernel / 2);
  return {.stride_h = static_cast<int>(stride),
          .stride_w = static_cast<int>(stride),
          .pad_h = pad,
          .pad_w = pad};
}

// The tensors of extents (images, C, height and width, K, R and S, stride), random.
struct Convolution {
  explicit Convolution(Timer& t)
      : shards(t.shards()),
        params(same_size(t[4], t[5])),
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
