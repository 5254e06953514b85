// From random words to floats of a range. The one definition for all devices and x86-64 levels.
#pragma once

#include "core/dtype.h"

namespace lockstep::kernels {

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

}  // namespace lockstep::kernels
