#include "kernels/elementwise/add.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void add(Stream& stream, const Tensor& src, Tensor& dst) {
  const OpCheck check("add", stream);
  check.floating("src", src);
  check.like("dst", dst, src.shape(), src.dtype());
  if (check.dry(src.numel(), bytes_of(src, dst, dst))) return;
  LS_DISPATCH(add, (stream, src, dst))
}

}  // namespace lockstep::kernels
