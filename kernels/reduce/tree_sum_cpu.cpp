#include "kernels/reduce/tree_rows.h"
#include "kernels/reduce/tree_sum.h"

namespace lockstep::kernels::LS_CPU {

void tree_sum(Stream& stream, const Tensor& leaves, Tensor& out) {
  const int64_t columns = leaves.shape()[1];
  dispatch_float(leaves.dtype(), [&]<class Leaf>() {
    dispatch_float(out.dtype(), [&]<class Node>() {
      const Leaf* first = leaves.data<Leaf>();
      sum_tree<Leaf, Node>(
          stream,
          columns,
          leaves.shape()[0],
          [=](int64_t row) { return first + row * columns; },
          1,
          [&](int64_t) { return out.data<Node>(); });
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
