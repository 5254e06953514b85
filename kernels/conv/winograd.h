// 3x3 and 5x5 convolutions by Winograd's algorithm, which needs fewer multiplications than direct
// sums.
//   forward          out = A^T [sum over channels of (G g G^T) * (B^T d B)] A
//   backward data    the same, of grad_out and the weights turned around
//   backward weight  G^T [sum over tiles of (A dy A^T) * (B^T d B)] G
// d is a window of inputs, g a filter, dy a tile of gradients; * is elementwise. Sums are in f32,
// over channels or the shard's tiles, in order. A NaN or an infinity spreads over its tile.
//   x86-64-v3  F(4x4,3x3) and F(2x2,5x5) in f32, whatever the tensors' type: 36 products give 16
//              outputs, or four of 5x5, where direct sums take 144, or 100. Results differ from
//              direct sums by about 1e-6 of their norm, twice the error of direct sums in f32.
//   x86-64-v4  F(2x2,3x3) in bf16, on processors with arithmetic for it: 16 products give four
//              outputs, where direct sums take 36. The factors of products are transformed in f32
//              and rounded to bf16. Results differ from direct sums by about 0.4 % of their norm;
//              rounding them to bf16 costs 0.17 % alone. In f32 oneDNN's F(4x4,3x3) is used there.
// Source: Lavin and Gray 2015, "Fast Algorithms for Convolutional Neural Networks". Spec:
// tests/reference/conv2d.h, and tests/reference/winograd.h for bf16
#pragma once

#include "kernels/conv/conv2d.h"

namespace lockstep::kernels {

// Tells whether conv2d's ops use this algorithm. in (N,C,H,W) and weight (K,C,R,S), both of
// `dtype`.
bool suits_winograd(const Stream& stream,
                    Dtype dtype,
                    const Shape& in,
                    const Shape& weight,
                    const Conv2dParams& params);

// conv2d's ops. Requires: suits_winograd().
Conv2dForward winograd_forward;
Conv2dBackwardData winograd_backward_data;
Conv2dBackwardWeight winograd_backward_weight;

namespace cpu_v3 {
Conv2dForward winograd_forward;
Conv2dBackwardData winograd_backward_data;
Conv2dBackwardWeight winograd_backward_weight;
}  // namespace cpu_v3
namespace cpu_v4 {
Conv2dForward winograd_forward;
Conv2dBackwardData winograd_backward_data;
Conv2dBackwardWeight winograd_backward_weight;
}  // namespace cpu_v4

}  // namespace lockstep::kernels
