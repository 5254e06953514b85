#include "kernels/cpu_loops.h"
#include "kernels/scale.h"

namespace lockstep::kernels::LS_CPU {

void scale(Stream& stream, float factor, Tensor& values) {
  dispatch_float(values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    T* x = values.data<T>();
    for_ranges(stream, values.numel(), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) x[i] = T(factor * static_cast<float>(x[i]));
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
