// Uniform random numbers.
//   out[i] = low + (high - low) * u[i], u[i] = the upper 24 bits of a draw / 2^24
// The draw depends on the params' seed, purpose and epoch and on i alone. Each step is rounded to
// f32, the result to out's dtype; low and high are rounded to it first. What would round to high
// becomes the value below it: low <= out[i] < high always.
// Source: torch.Tensor.uniform_, with other numbers. Spec: tests/reference/fill_uniform.h
#pragma once

#include "core/philox.h"
#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

struct FillUniformParams {
  uint64_t seed = 0;
  RandomPurpose purpose = RandomPurpose::kSynthetic;
  uint32_t epoch = 0;  // or step: whatever tells one use of the purpose from the next
  float low = 0;
  float high = 1;
};

// Shapes: any; f32, f16 or bf16. Errors: DtypeError, DeviceError; ShapeError unless low < high and
// high - low are finite in out's dtype.
using FillUniform = void(Stream& stream, const FillUniformParams& params, Tensor& out);

// From random words to floats of a range, for all devices and x86-64 levels.
struct UniformRange {
  float low = 0;
  float width = 1;
  float last = 1;  // the largest value below the upper end

  [[gnu::always_inline]] constexpr float at(uint32_t draw) const {
    const float value = low + width * (static_cast<float>(draw >> 8) * 0x1p-24F);
    return value < last ? value : last;
  }
};

// [low, high), ends rounded to `dtype`: values of at() stay below high when they are rounded too.
// Requires: f32, f16 or bf16.
UniformRange uniform_range(Dtype dtype, float low, float high);

LS_DECLARE_OP(FillUniform, fill_uniform)

}  // namespace lockstep::kernels
