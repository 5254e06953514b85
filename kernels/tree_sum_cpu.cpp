#include <bit>
#include <cstring>
#include <utility>

#include "core/tree.h"
#include "kernels/cpu_loops.h"
#include "kernels/float_tile.h"
#include "kernels/tree_sum.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// A cache line, so that no line is visited twice where rows collide in the cache.
constexpr int64_t kLineLanes = 16;
using Line = FloatTile<kLineLanes>;

// core/tree.h's tree over kRows rows, known to the compiler. load(row) gives a row's part.
template <int kRows, class Load>
[[gnu::always_inline]] inline auto sum_column(int first, Load&& load) {
  if constexpr (kRows == 1) {
    return load(first);
  } else {
    constexpr int kLeft = std::bit_floor(static_cast<unsigned>(kRows - 1));
    return sum_column<kLeft>(first, load) + sum_column<kRows - kLeft>(first + kLeft, load);
  }
}

template <int kRows>
void sum_rows(const float* rows, int64_t stride, int64_t n, float* out) {
  int64_t i = 0;
  for (; i + kLineLanes <= n; i += kLineLanes) {
    sum_column<kRows>(0, [=](int row) {
      return Line::load(rows + row * stride + i);
    }).store(out + i);
  }
  for (; i < n; ++i) out[i] = sum_column<kRows>(0, [=](int row) { return rows[row * stride + i]; });
}

constexpr int64_t kMaxRows = 16;  // a power of two: a subtree of its own in any larger tree
using SumRows = void (*)(const float*, int64_t, int64_t, float*);

template <int... kRows>
SumRows sum_rows_of(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr SumRows kTable[] = {sum_rows<kRows + 1>...};
  return kTable[rows - 1];
}
SumRows sum_rows_of(int64_t rows) {
  return sum_rows_of(rows, std::make_integer_sequence<int, kMaxRows>{});
}

constexpr int64_t kColumns = 256;  // at a time: the nodes stay in the first cache level

// More rows than kMaxRows: subtrees of kMaxRows, then the tree over those. nodes holds a float a
// subtree and column.
void sum_many_rows(
    const float* leaves, int64_t rows, int64_t stride, int64_t n, float* nodes, float* out) {
  const int64_t subtrees = (rows + kMaxRows - 1) / kMaxRows;
  for (int64_t k = 0; k < subtrees; ++k) {
    const int64_t first = k * kMaxRows;
    const SumRows sum = sum_rows_of(std::min(kMaxRows, rows - first));
    sum(leaves + first * stride, stride, n, nodes + k * kColumns);
  }
  for_each_tree_merge(subtrees, [=](int64_t into, int64_t from) {
    for (int64_t i = 0; i < n; ++i) nodes[into * kColumns + i] += nodes[from * kColumns + i];
  });
  std::memcpy(out, nodes, static_cast<size_t>(n) * sizeof(float));
}

}  // namespace

void tree_sum(Stream& stream, const Tensor& leaves, Tensor& out) {
  const int64_t rows = leaves.shape()[0];
  const int64_t stride = leaves.shape()[1];
  const float* from = leaves.data<float>();
  float* to = out.data<float>();
  if (rows <= kMaxRows) {
    const SumRows sum = sum_rows_of(rows);
    for_ranges(stream, stride, [=](int64_t begin, int64_t end) {
      sum(from + begin, stride, end - begin, to + begin);
    });
    return;
  }
  const int64_t subtrees = (rows + kMaxRows - 1) / kMaxRows;
  const auto worker_bytes = static_cast<size_t>(subtrees * kColumns) * sizeof(float);
  const Workspace scratch = stream.workspace(0, worker_bytes);
  stream.fork((stride + kColumns - 1) / kColumns, [&](int64_t task, int worker) {
    const int64_t begin = task * kColumns;
    sum_many_rows(from + begin,
                  rows,
                  stride,
                  std::min(kColumns, stride - begin),
                  reinterpret_cast<float*>(scratch.of(worker)),
                  to + begin);
  });
}

}  // namespace lockstep::kernels::LS_CPU
