#include "kernels/elementwise/scale.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void scale(Stream& stream, float factor, Tensor& values) {
  const OpCheck check("scale", stream);
  check.dtype("values", values, {Dtype::kF32});
  if (check.dry(values.numel(), bytes_of(values, values))) return;
  LS_DISPATCH(scale, (stream, factor, values))
}

}  // namespace lockstep::kernels
