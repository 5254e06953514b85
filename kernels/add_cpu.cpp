#include "kernels/add.h"
#include "kernels/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {

void add(Stream& stream, const Tensor& src, Tensor& dst) {
  dispatch_float(src.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* from = src.data<T>();
    T* to = dst.data<T>();
    for_ranges(stream, src.numel(), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        to[i] = T(static_cast<float>(to[i]) + static_cast<float>(from[i]));
      }
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
