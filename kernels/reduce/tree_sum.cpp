#include "kernels/reduce/tree_sum.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void tree_sum(Stream& stream, const Tensor& leaves, Tensor& out) {
  const OpCheck check("tree_sum", stream);
  check.floating("leaves", leaves);
  check.floating("out", out);
  check.rank("leaves", leaves, 2);
  check.require(leaves.shape()[0] >= 1, "a leaf at least");
  check.like("out", out, {leaves.shape()[1]}, out.dtype());
  if (check.dry(leaves.numel() - out.numel(), bytes_of(leaves, out))) return;
  LS_DISPATCH(tree_sum, (stream, leaves, out))
}

}  // namespace lockstep::kernels
