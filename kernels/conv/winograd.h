// 3x3 convolutions in bf16 by Winograd's algorithm F(2x2,3x3), on x86-64-v4 processors with
// arithmetic for bf16: 16 products give four outputs of a channel, where direct sums take 36.
//   forward          out = A^T [sum over channels of (G g G^T) * (B^T d B)] A
//   backward data    the same, of grad_out and the weights turned around
//   backward weight  G^T [sum over tiles of (A dy A^T) * (B^T d B)] G
// d is a tile's window of 4x4 inputs, g a filter, dy a tile of 2x2 gradients; * goes by points. The
// factors of products are transformed in f32 and rounded to bf16. Sums are in f32, over channels or
// the shard's tiles, in order. Against direct sums, results are off by some 0.4 % of their norm;
// rounding them to bf16 costs 0.17 % alone. A NaN or an infinity spreads over its tile.
// Source: Lavin and Gray 2015, "Fast Algorithms for Convolutional Neural Networks". Spec:
// tests/reference/winograd.h
#pragma once

#include "kernels/conv/conv2d.h"

namespace lockstep::kernels {

// Whether conv2d's ops take this algorithm. in (N,C,H,W), weight (K,C,R,S). `dtype` is theirs.
bool suits_winograd(const Stream& stream,
                    Dtype dtype,
                    const Shape& in,
                    const Shape& weight,
                    const Conv2dParams& params);

// conv2d's ops where suits_winograd().
namespace cpu_v4 {
Conv2dForward winograd_forward;
Conv2dBackwardData winograd_backward_data;
Conv2dBackwardWeight winograd_backward_weight;
}  // namespace cpu_v4

}  // namespace lockstep::kernels
