#include "kernels/reduce/peer_sum.h"
#include "kernels/reduce/tree_rows.h"

namespace lockstep::kernels::LS_CPU {

void peer_sum(Stream& stream, std::span<const Tensor> leaves, std::span<Tensor> sums) {
  dispatch_float(leaves.front().dtype(), [&]<class T>() {
    sum_tree<T, T>(
        stream,
        leaves.front().numel(),
        static_cast<int64_t>(leaves.size()),
        [&](int64_t w) { return leaves[static_cast<size_t>(w)].data<T>(); },
        static_cast<int64_t>(sums.size()),
        [&](int64_t k) { return sums[static_cast<size_t>(k)].data<T>(); });
  });
}

}  // namespace lockstep::kernels::LS_CPU
