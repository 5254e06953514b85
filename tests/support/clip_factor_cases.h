// Test cases of the clip factor, for the CPU and for CUDA.
#pragma once

#include <limits>

#include "core/transfer.h"
#include "kernels/optim/gradient_factors.h"
#include "kernels/reduce/tensor_norms.h"
#include "tests/reference/clip_factor.h"
#include "tests/support/close.h"
#include "tests/support/loss_scale_cases.h"

namespace lockstep::testing {

inline float clip_factor(Stream& stream, float norm, float max_norm, const Tensor& state) {
  Tensor norms = Tensor::empty({2}, Dtype::kF32);
  norms.span<float>()[0] = std::numeric_limits<float>::quiet_NaN();  // one tensor's norm: not read
  norms.span<float>()[1] = norm;
  Tensor factor = to_device(stream, Tensor::zeros({1}, Dtype::kF32));
  kernels::clip_factor(stream, to_device(stream, norms), max_norm, state, factor);
  return to_cpu(stream, factor).span<float>()[0];
}

inline void expect_clip_factors(Stream& stream) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float norm : {0.0F, 1e-30F, 0.5F, 0.999999F, 1.0F, 5.0F, 3e38F, kInf, kNan}) {
    for (const float max_norm : {1e-6F, 1.0F, 7.0F}) {
      for (const float scale : {1.0F, 3.0F, 65536.0F}) {
        const Tensor state = loss_scale_state(stream, {.scale = scale});
        const auto want = static_cast<float>(reference::clip_factor(norm, max_norm, scale));
        const float got = clip_factor(stream, norm, max_norm, state);
        EXPECT_TRUE(close(std::span(&got, 1), std::span(&want, 1), {3e-7, 0}))
            << norm << " to " << max_norm << " at scale " << scale;
      }
    }
  }
  // PyTorch's result for the gradient (3, 4) with a limit of 1.
  EXPECT_FLOAT_EQ(3 * clip_factor(stream, 5, 1, {}), 0.5999999F);
  EXPECT_EQ(clip_factor(stream, 0.5F, 1, {}), 1);
}

}  // namespace lockstep::testing
