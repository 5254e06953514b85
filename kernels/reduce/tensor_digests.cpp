#include "kernels/reduce/tensor_digests.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void tensor_digests(Stream& stream, std::span<const Tensor> tensors, Tensor& digests) {
  const OpCheck check("tensor_digests", stream);
  size_t bytes = digests.nbytes();
  for (const Tensor& tensor : tensors) {
    check.dtype("tensor", tensor, {tensor.dtype()});
    bytes += tensor.nbytes();
  }
  check.like("digests", digests, {static_cast<int64_t>(tensors.size())}, Dtype::kI64);
  if (check.dry(0, static_cast<int64_t>(bytes))) return;
  LS_DISPATCH(tensor_digests, (stream, tensors, digests))
}

}  // namespace lockstep::kernels
