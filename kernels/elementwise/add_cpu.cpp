#include "kernels/elementwise/add.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {

void add(Stream& stream, const Tensor& src, Tensor& dst) {
  dispatch_float(src.dtype(), [&]<class T>() {
    const T* from = src.data<T>();
    T* to = dst.data<T>();
    for_ranges(stream, src.numel(), [=](int64_t begin, int64_t end) {
      map_lines(
          end - begin,
          to + begin,
          [](const Line& sum, const Line& term) { return sum + term; },
          to + begin,
          from + begin);
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
