// Test cases of LARC's factors, for the CPU and for CUDA.
#pragma once

#include <limits>
#include <vector>

#include "core/transfer.h"
#include "kernels/optim/gradient_factors.h"
#include "tests/reference/larc_factors.h"
#include "tests/support/close.h"
#include "tests/support/loss_scale_cases.h"

namespace lockstep::testing {

inline Tensor row_of(const std::vector<float>& values) {
  Tensor row = Tensor::empty({std::ssize(values)}, Dtype::kF32);
  std::ranges::copy(values, row.data<float>());
  return row;
}

// All combinations of norms and decays; more than a block has threads.
inline std::vector<reference::LarcTensor> larc_tensors() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<reference::LarcTensor> tensors;
  for (const float param : {0.0F, 1e-3F, 1.0F, 37.5F, kInf, kNan}) {
    for (const float grad : {0.0F, 1e-7F, 0.5F, 1.0F, 800.0F, 3e30F, kInf, kNan}) {
      for (const float decay : {0.0F, 1e-4F, 0.5F}) tensors.push_back({param, grad, decay});
    }
  }
  return tensors;
}

inline std::vector<float> larc_factors(Stream& stream,
                                       const std::vector<reference::LarcTensor>& tensors,
                                       const kernels::LarcParams& params) {
  std::vector<float> norms;
  std::vector<float> decays;
  for (const auto& tensor : tensors) norms.push_back(static_cast<float>(tensor.param_norm));
  for (const auto& tensor : tensors) {
    norms.push_back(static_cast<float>(tensor.scaled_grad_norm));
    decays.push_back(static_cast<float>(tensor.weight_decay));
  }
  norms.push_back(std::numeric_limits<float>::quiet_NaN());  // the total norm, which is not read
  Tensor factors = to_device(stream, Tensor::zeros({std::ssize(tensors)}, Dtype::kF32));
  kernels::larc_factors(
      stream, to_device(stream, row_of(norms)), to_device(stream, row_of(decays)), params, factors);
  const Tensor on_cpu = to_cpu(stream, factors);
  return {on_cpu.span<const float>().begin(), on_cpu.span<const float>().end()};
}

inline void expect_larc_factors(Stream& stream) {
  const std::vector<reference::LarcTensor> tensors = larc_tensors();
  for (const bool clip : {true, false}) {
    for (const double lr : {0.0, 0.1, 4.0}) {
      for (const float scale : {1.0F, 3.0F, 65536.0F}) {
        const std::vector<double> lrs = {77, lr};
        const Tensor state = loss_scale_state(stream, {.scale = scale, .applied = 1});
        const Tensor table = to_device(stream, kernels::lr_table_of(lrs));
        const std::vector<float> got = larc_factors(
            stream, tensors, {.clip = clip, .control = {.state = state, .lr_table = table}});
        std::vector<float> want;
        for (const auto& tensor : tensors) {
          want.push_back(
              static_cast<float>(reference::larc_factor(tensor, 0.02F, 1e-8F, clip, lr, scale)));
        }
        EXPECT_TRUE(close(got, want, {1e-6, 0})) << clip << " " << lr << " " << scale;
      }
    }
  }
}

// Expects the factors of Apex's formula, evaluated in PyTorch's f32: norms 5 and 10, decay 1e-4.
inline void expect_apexs_factors(Stream& stream) {
  const std::vector<reference::LarcTensor> tensors = {{5, 10, 1e-4}, {5, 0.25, 0}, {0, 1, 0.1}};
  const std::vector<float> clipped = larc_factors(stream, tensors, {.lr = 0.1F});
  EXPECT_FLOAT_EQ(clipped[0], 0.0999949977F);
  EXPECT_EQ(clipped[1], 1);
  EXPECT_EQ(clipped[2], 1);
  const std::vector<float> scaled = larc_factors(stream, tensors, {.clip = false, .lr = 0.1F});
  EXPECT_FLOAT_EQ(scaled[0], 0.00999949966F);
  EXPECT_FLOAT_EQ(scaled[1], 0.4F);
  EXPECT_EQ(scaled[2], 1);
}

}  // namespace lockstep::testing
