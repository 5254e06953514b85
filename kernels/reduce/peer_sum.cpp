#include "kernels/reduce/peer_sum.h"

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {

void peer_sum(Stream& stream, std::span<const Tensor> leaves, std::span<Tensor> sums) {
  const OpCheck check("peer_sum", stream);
  check.require(!leaves.empty(), "a leaf at least");
  const Tensor& first = leaves.front();
  check.floating("leaf", first);
  check.rank("leaf", first, 1);
  for (const Tensor& leaf : leaves) check.like("leaf", leaf, first.shape(), first.dtype());
  for (const Tensor& sum : sums) check.like("sum", sum, first.shape(), first.dtype());
  if (check.dry(first.numel() * static_cast<int64_t>(leaves.size() - 1),
                static_cast<int64_t>(first.nbytes() * (leaves.size() + sums.size())))) {
    return;
  }
  LS_DISPATCH(peer_sum, (stream, leaves, sums))
}

}  // namespace lockstep::kernels
