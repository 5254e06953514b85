#include "kernels/elementwise/scale.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {

void scale(Stream& stream, float factor, Tensor& values) {
  float* x = values.data<float>();
  for_ranges(stream, values.numel(), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) x[i] *= factor;
  });
}

}  // namespace lockstep::kernels::LS_CPU
