// One thread sums a pack of columns, 16 bytes of the result, by tree.cuh. Traffic per column: a
// value of each leaf and one of the result. Bound: DRAM.
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/reduce/tree.cuh"
#include "kernels/reduce/tree_sum.h"

namespace lockstep::kernels::cuda {
namespace {

template <class Leaf, class Node>
struct TreeSumBody {
  static constexpr int kCount = 16 / sizeof(Node);
  const Leaf* leaves;
  int rows;
  int64_t columns;
  Node* out;

  template <int n>
  __device__ void run(int64_t first) const {
    const auto load = [&](int row) {
      const Pack<Leaf, n> leaf = load_pack<n>(leaves + row * columns + first);
      Pack<Node, n> node;
#pragma unroll
      for (int i = 0; i < n; ++i) node[i] = from_float<Node>(to_float(leaf[i]));
      return node;
    };
    store_pack(out + first, sum_leaves<Node, n>(rows, load));
  }
};

}  // namespace

void tree_sum(Stream& stream, const Tensor& leaves, Tensor& out) {
  const int64_t rows = leaves.shape()[0];
  const int64_t columns = leaves.shape()[1];
  check_leaves("tree_sum", rows);
  with_float_type(leaves.dtype(), [&]<class Leaf>() {
    with_float_type(out.dtype(), [&]<class Node>() {
      const TreeSumBody<Leaf, Node> body{
          elements<Leaf>(leaves), static_cast<int>(rows), columns, elements<Node>(out)};
      launch_elementwise(stream,
                         "tree_sum",
                         columns,
                         body,
                         {body.leaves, body.out},
                         rows == 1 || columns % body.kCount == 0);
    });
  });
}

}  // namespace lockstep::kernels::cuda
