#include "kernels/elementwise/cast.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {

void cast(Stream& stream, const Tensor& src, Tensor& dst) {
  dispatch_float(src.dtype(), [&](auto src_tag) {
    dispatch_float(dst.dtype(), [&](auto dst_tag) {
      using Src = typename decltype(src_tag)::Type;
      using Dst = typename decltype(dst_tag)::Type;
      const Src* from = src.data<Src>();
      Dst* to = dst.data<Dst>();
      for_ranges(stream, src.numel(), [=](int64_t begin, int64_t end) {
        convert(from + begin, end - begin, to + begin);
      });
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
