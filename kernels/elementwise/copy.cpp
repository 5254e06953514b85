#include "kernels/elementwise/copy.h"

#include "kernels/support/dispatch.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {

void copy(Stream& stream, const Tensor& src, Tensor& dst) {
  const OpCheck check("copy", stream);
  check.like("src", src, src.shape(), src.dtype());
  check.like("dst", dst, src.shape(), src.dtype());
  if (check.dry(0, static_cast<int64_t>(2 * src.nbytes()))) return;
  LS_DISPATCH(copy, (stream, src, dst))
}

}  // namespace lockstep::kernels
