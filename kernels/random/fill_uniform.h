// Uniform random numbers.
//   out[i] = low + (high - low) * u[i], u[i] = the upper 24 bits of a draw / 2^24
// The draw depends only on the params' seed, purpose and epoch, and on i. Each step is rounded to
// f32, the result to out's dtype; low and high are rounded to it first. A value that would round to
// high becomes the next value below it, so that low <= out[i] < high always holds.
// Source: torch.Tensor.uniform_, with other numbers. Spec: tests/reference/fill_uniform.h
#pragma once

#include "core/philox.h"
#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct FillUniformParams {
  uint64_t seed = 0;
  RandomPurpose purpose = RandomPurpose::kSynthetic;
  uint32_t epoch = 0;  // or step: different for each use of the purpose
  float low = 0;
  float high = 1;
};

// Shapes: any; f32, f16 or bf16. Errors: DtypeError, DeviceError; ShapeError unless low < high and
// high - low are finite in out's dtype.
using FillUniform = void(Stream& stream, const FillUniformParams& params, Tensor& out);

// Maps random words to floats of a range. All devices and x86-64 levels share this definition.
struct UniformRange {
  float low = 0;
  float width = 1;
  float last = 1;  // the largest value below the upper end

  [[gnu::always_inline]] constexpr float at(uint32_t draw) const {
    const float value = low + width * (static_cast<float>(draw >> 8) * 0x1p-24F);
    return value < last ? value : last;
  }
};

// The range [low, high), with ends rounded to `dtype`; values of at() stay below high even when
// they are rounded.
// Requires: f32, f16 or bf16.
UniformRange uniform_range(Dtype dtype, float low, float high);

LS_DECLARE_OP(FillUniform, fill_uniform)

}  // namespace lockstep::kernels
