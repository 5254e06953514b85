#include "kernels/elementwise/cast.h"

#include "kernels/support/dispatch.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {

void cast(Stream& stream, const Tensor& src, Tensor& dst) {
  const OpCheck check("cast", stream);
  check.floating("src", src);
  check.floating("dst", dst);
  check.like("dst", dst, src.shape(), dst.dtype());
  if (check.dry(src.numel(), static_cast<int64_t>(src.nbytes() + dst.nbytes()))) return;
  LS_DISPATCH(cast, (stream, src, dst))
}

}  // namespace lockstep::kernels
