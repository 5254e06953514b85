#include "kernels/cast.h"
#include "kernels/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {

void cast(Stream& stream, const Tensor& src, Tensor& dst) {
  dispatch_float(src.dtype(), [&](auto src_tag) {
    dispatch_float(dst.dtype(), [&](auto dst_tag) {
      using Src = typename decltype(src_tag)::Type;
      using Dst = typename decltype(dst_tag)::Type;
      const Src* from = src.data<Src>();
      Dst* to = dst.data<Dst>();
      for_ranges(stream, src.numel(), [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = Dst(static_cast<float>(from[i]));
      });
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
