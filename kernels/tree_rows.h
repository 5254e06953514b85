// core/tree.h's tree over rows of elements, column by column.
// Included by *_cpu.cpp files alone: see cpu_loops.h.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <type_traits>
#include <utility>

#include "core/tree.h"
#include "kernels/cpu_loops.h"
#include "kernels/float_line.h"

namespace lockstep::kernels::LS_CPU {

// load(row) gives a leaf, round(sum) an inner node. kRows is known to the compiler: no loop. The
// root is left to whoever stores it to round.
template <int kRows, class Load, class Round>
[[gnu::always_inline]] inline auto sum_column(int first, const Load& load, const Round& round) {
  if constexpr (kRows == 1) {
    return load(first);
  } else {
    constexpr int kLeft = std::bit_floor(static_cast<unsigned>(kRows - 1));
    const auto operand = [&]<int kCount>(std::integral_constant<int, kCount>, int row) {
      const auto node = sum_column<kCount>(row, load, round);
      if constexpr (kCount == 1) {
        return node;
      } else {
        return round(node);
      }
    };
    return operand(std::integral_constant<int, kLeft>{}, first) +
           operand(std::integral_constant<int, kRows - kLeft>{}, first + kLeft);
  }
}

// Columns [begin, end) of the rows, summed into every one of `sums`, where a column's number counts
// from the same place. A sum may be a row.
template <class Leaf, class Node, int kRows>
void sum_rows(const Leaf* const* rows, std::span<Node* const> sums, int64_t begin, int64_t end) {
  const auto round = [](const auto& node) { return rounded<Node>(node); };
  int64_t i = begin;
  for (; i + kLineLanes <= end; i += kLineLanes) {
    const auto load = [=](int row) {
      const Line leaf = load_line(rows[row] + i);
      if constexpr (std::is_same_v<Leaf, Node>) {
        return leaf;
      } else {
        return rounded<Node>(leaf);
      }
    };
    const Line root = sum_column<kRows>(0, load, round);
    for (Node* sum : sums) store_line(root, sum + i);
  }
  for (; i < end; ++i) {
    const auto load = [=](int row) { return rounded<Node>(static_cast<float>(rows[row][i])); };
    const Node root(sum_column<kRows>(0, load, round));
    for (Node* sum : sums) sum[i] = root;
  }
}

inline constexpr int64_t kMaxRows = 16;  // a power of two: a subtree of its own in any larger tree

template <class Leaf, class Node>
using SumRows = void (*)(const Leaf* const*, std::span<Node* const>, int64_t, int64_t);

// Requires: 1 <= rows <= kMaxRows.
template <class Leaf, class Node>
SumRows<Leaf, Node> sum_rows_of(int64_t rows) {
  return [rows]<int... kRows>(std::integer_sequence<int, kRows...>) {
    static constexpr SumRows<Leaf, Node> kTable[] = {sum_rows<Leaf, Node, kRows + 1>...};
    return kTable[rows - 1];
  }(std::make_integer_sequence<int, kMaxRows>{});
}

inline constexpr int64_t kNodeColumns = 256;  // at a time: nodes stay in the first cache level

// More rows than kMaxRows, kNodeColumns columns at most: subtrees of kMaxRows, then the tree over
// those. nodes holds kNodeColumns a subtree.
template <class Leaf, class Node>
void sum_many_rows(std::span<const Leaf* const> rows,
                   std::span<Node* const> sums,
                   int64_t begin,
                   int64_t end,
                   Node* nodes) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t subtrees = (count + kMaxRows - 1) / kMaxRows;
  for (int64_t k = 0; k < subtrees; ++k) {
    std::array<const Leaf*, kMaxRows> subtree;
    const int64_t size = std::min(kMaxRows, count - k * kMaxRows);
    for (int64_t row = 0; row < size; ++row) subtree[row] = rows[k * kMaxRows + row] + begin;
    Node* node = nodes + k * kNodeColumns;
    sum_rows_of<Leaf, Node>(size)(subtree.data(), {&node, 1}, 0, end - begin);
  }
  for_each_tree_merge(subtrees, [=](int64_t into, int64_t from) {
    Node* node = nodes + into * kNodeColumns;
    const std::array<const Node*, 2> pair = {node, nodes + from * kNodeColumns};
    sum_rows<Node, Node, 2>(pair.data(), {&node, 1}, 0, end - begin);
  });
  for (Node* sum : sums) std::copy(nodes, nodes + (end - begin), sum + begin);
}

// sum_at(k)[i] = tree over r of row_at(r)[i], i < n; leaves are rounded to Node first. Both give
// pointers. Takes the stream's workspace.
template <class Leaf, class Node, class RowAt, class SumAt>
void sum_tree(Stream& stream,
              int64_t n,
              int64_t row_count,
              const RowAt& row_at,
              int64_t sum_count,
              const SumAt& sum_at) {
  const int64_t subtrees = row_count <= kMaxRows ? 0 : (row_count + kMaxRows - 1) / kMaxRows;
  const Workspace scratch =
      stream.workspace(static_cast<size_t>(row_count + sum_count) * sizeof(void*),
                       static_cast<size_t>(subtrees * kNodeColumns) * sizeof(Node));
  auto** rows = reinterpret_cast<const Leaf**>(scratch.shared);
  auto** sums = reinterpret_cast<Node**>(scratch.shared) + row_count;
  for (int64_t r = 0; r < row_count; ++r) rows[r] = row_at(r);
  for (int64_t k = 0; k < sum_count; ++k) sums[k] = sum_at(k);
  const std::span<Node* const> all_sums(sums, static_cast<size_t>(sum_count));

  if (subtrees == 0) {
    const auto sum = sum_rows_of<Leaf, Node>(row_count);
    for_ranges(stream, n, [=](int64_t begin, int64_t end) { sum(rows, all_sums, begin, end); });
    return;
  }
  const std::span<const Leaf* const> all_rows(rows, static_cast<size_t>(row_count));
  stream.fork((n + kNodeColumns - 1) / kNodeColumns, [=](int64_t task, int worker) {
    const int64_t begin = task * kNodeColumns;
    const int64_t end = std::min(n, begin + kNodeColumns);
    sum_many_rows(all_rows, all_sums, begin, end, reinterpret_cast<Node*>(scratch.of(worker)));
  });
}

}  // namespace lockstep::kernels::LS_CPU
