#include "kernels/reduce/nonfinite_rows.h"

#include <limits>

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void nonfinite_rows(Stream& stream, const Tensor& in, Tensor& counts) {
  const OpCheck check("nonfinite_rows", stream);
  check.floating("in", in);
  check.require(in.shape().rank() >= 1, "rows");
  check.require(in.shape().stride0() <= std::numeric_limits<int32_t>::max(),
                "rows of fewer than 2^31 elements");
  check.like("counts", counts, {in.shape()[0]}, Dtype::kI32);
  if (check.dry(in.numel(), bytes_of(in, counts))) return;
  LS_DISPATCH(nonfinite_rows, (stream, in, counts))
}

}  // namespace lockstep::kernels
