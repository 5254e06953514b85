#include "kernels/add.h"

#include "kernels/op_check.h"

namespace lockstep::kernels {

void add(Stream& stream, const Tensor& src, Tensor& dst) {
  const OpCheck check("add", stream);
  check.dtype("src", src, {Dtype::kF32, Dtype::kF16, Dtype::kBF16});
  check.like("dst", dst, src.shape(), src.dtype());
  if (check.dry(src.numel(), static_cast<int64_t>(3 * src.nbytes()))) return;
  LS_DISPATCH(add, (stream, src, dst))
}

}  // namespace lockstep::kernels
