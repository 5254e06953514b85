#include <cstring>

#include "kernels/elementwise/copy.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {

void copy(Stream& stream, const Tensor& src, Tensor& dst) {
  const std::byte* from = src.bytes();
  std::byte* to = dst.bytes();
  for_ranges(stream, static_cast<int64_t>(src.nbytes()), [=](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

void cast(Stream& stream, const Tensor& src, Tensor& dst) {
  dispatch_float(src.dtype(), [&]<class Src>() {
    dispatch_float(dst.dtype(), [&]<class Dst>() {
      const Src* from = src.data<Src>();
      Dst* to = dst.data<Dst>();
      for_ranges(stream, src.numel(), [=](int64_t begin, int64_t end) {
        convert(from + begin, end - begin, to + begin);
      });
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
