#include "kernels/reduce/tensor_norms.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void tensor_norms(Stream& stream, std::span<const Tensor> tensors, Tensor& norms) {
  const OpCheck check("tensor_norms", stream);
  int64_t numel = 0;
  size_t bytes = norms.nbytes();
  for (const Tensor& tensor : tensors) {
    check.floating("tensor", tensor);
    numel += tensor.numel();
    bytes += tensor.nbytes();
  }
  check.like("norms", norms, {static_cast<int64_t>(tensors.size()) + 1}, Dtype::kF32);
  if (check.dry(2 * numel, static_cast<int64_t>(bytes))) return;
  LS_DISPATCH(tensor_norms, (stream, tensors, norms))
}

}  // namespace lockstep::kernels
