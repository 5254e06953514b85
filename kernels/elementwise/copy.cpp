#include "kernels/elementwise/copy.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void copy(Stream& stream, const Tensor& src, Tensor& dst) {
  const OpCheck check("copy", stream);
  check.like("src", src, src.shape(), src.dtype());
  check.like("dst", dst, src.shape(), src.dtype());
  if (check.dry(0, bytes_of(src, dst))) return;
  LS_DISPATCH(copy, (stream, src, dst))
}

void cast(Stream& stream, const Tensor& src, Tensor& dst) {
  const OpCheck check("cast", stream);
  check.floating("src", src);
  check.floating("dst", dst);
  check.like("dst", dst, src.shape(), dst.dtype());
  if (check.dry(src.numel(), bytes_of(src, dst))) return;
  LS_DISPATCH(cast, (stream, src, dst))
}

}  // namespace lockstep::kernels
