// Describes one product of linear on one shard: everything that a plan for it depends on.
#pragma once

#include <string>

#include "core/stream.h"

namespace lockstep::kernels::cublaslt {

enum class LinearPass : uint8_t { kForward, kBackwardData, kBackwardWeight };

// Activations and weights have `dtype`; a gradient of the weights is f32.
struct LinearProblem {
  LinearPass pass = LinearPass::kForward;
  Dtype dtype = Dtype::kF32;
  int64_t images = 0, inputs = 0, outputs = 0;
  bool has_bias = false;  // kForward only: added before the result is rounded
  // Alignment in bytes, powers of two that hold for every shard: of cuBLASLt's operands a and b
  // (weight and in, weight and grad_out, or in and grad_out), and of the result d.
  int64_t alignment_a = 0, alignment_b = 0, alignment_d = 0;

  // values[0] is the number of images.
  PlanKey key() const;
  // "forward f16 256x512 -> 1000, bias"
  std::string text() const;
};

}  // namespace lockstep::kernels::cublaslt
