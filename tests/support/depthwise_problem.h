// Problems for tests of depthwise_conv2d on the CPU and on CUDA, with their results.
#pragma once

#include <ostream>
#include <vector>

#include "kernels/conv/depthwise_conv2d.h"
#include "tests/reference/depthwise_conv2d.h"
#include "tests/support/close_sum.h"
#include "tests/support/float_types.h"
#include "tests/support/random_tensor.h"

namespace lockstep::reference {

inline void PrintTo(const DepthwiseConv2dSizes& z,
                    std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << z.n << "x" << z.c << "x" << z.h << "x" << z.w << " by " << z.r << "x" << z.s << " stride "
       << z.stride_h << "x" << z.stride_w << " pad " << z.pad_h << "x" << z.pad_w;
}

}  // namespace lockstep::reference

namespace lockstep::testing {

using reference::DepthwiseConv2dSizes;

// Images, channels, height, width, filter, stride, pad.
inline const DepthwiseConv2dSizes kDepthwiseSizes[] = {
    {3, 16, 5, 7, 3, 3, 1, 1, 1, 1},
    {2, 21, 6, 5, 3, 3, 2, 2, 1, 1},
    {2, 40, 9, 9, 5, 5, 2, 2, 2, 2},
    {1, 3, 1, 1, 3, 3, 1, 1, 1, 1},  // one pixel
    {2, 1, 4, 6, 1, 1, 1, 1, 0, 0},
    {2, 36, 4, 9, 2, 4, 1, 3, 0, 2},  // not square
    {1, 8, 7, 8, 2, 2, 3, 4, 0, 0},   // gaps between windows
    {1, 6, 3, 4, 3, 4, 1, 1, 4, 5},   // some windows see only padding
    {1, 16, 8, 9, 7, 8, 1, 1, 0, 0},
    {0, 8, 4, 4, 3, 3, 1, 1, 0, 0},
    {2, 0, 4, 4, 3, 3, 1, 1, 0, 0}};

struct DepthwiseProblem {
  DepthwiseProblem(const DepthwiseConv2dSizes& sizes, Dtype dtype)
      : z(sizes),
        params{static_cast<int>(z.stride_h),
               static_cast<int>(z.stride_w),
               static_cast<int>(z.pad_h),
               static_cast<int>(z.pad_w)},
        in(rounded_to(dtype, random_tensor({z.n, z.c, z.h, z.w}, 1))),
        weight(rounded_to(dtype, random_tensor({z.c, 1, z.r, z.s}, 2))),
        grad_out(rounded_to(dtype, random_tensor({z.n, z.c, z.oh(), z.ow()}, 3))) {}

  ::testing::AssertionResult right_out(const Tensor& got) const {
    return close_sum(
        got, reference::depthwise_conv2d_forward(values_of(in), values_of(weight), z), z.r * z.s);
  }
  ::testing::AssertionResult right_grad_in(const Tensor& got) const {
    return close_sum(
        got,
        reference::depthwise_conv2d_backward_data(values_of(grad_out), values_of(weight), z),
        z.r * z.s);
  }
  ::testing::AssertionResult right_grad_weight(const Tensor& got, const Shards& shards) const {
    std::vector<double> want;
    for (int64_t k = 0; k < shards.local(); ++k) {
      const auto leaf = reference::depthwise_conv2d_backward_weight(
          values_of(in), values_of(grad_out), z, shards.begin(k), shards.begin(k + 1));
      want.insert(want.end(), leaf.begin(), leaf.end());
    }
    return close_sum(got, want, z.n * z.oh() * z.ow());
  }

  DepthwiseConv2dSizes z;
  kernels::Conv2dParams params;
  Tensor in, weight, grad_out;
};

}  // namespace lockstep::testing
