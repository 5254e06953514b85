#include "kernels/elementwise/scale.h"

#include "kernels/support/dispatch.h"
#include "kernels/support/op_check.h"

namespace lockstep::kernels {

void scale(Stream& stream, float factor, Tensor& values) {
  const OpCheck check("scale", stream);
  check.dtype("values", values, {Dtype::kF32});
  if (check.dry(values.numel(), static_cast<int64_t>(2 * values.nbytes()))) return;
  LS_DISPATCH(scale, (stream, factor, values))
}

}  // namespace lockstep::kernels
