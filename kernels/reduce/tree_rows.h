// core/tree.h's tree over rows of elements, column by column.
// Included by *_cpu.cpp files alone: see cpu_loops.h.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <type_traits>
#include <utility>

#include "core/round_up.h"
#include "core/tree.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {

// The tree over rows [first, first + kRows), unrolled at compile time; load(row) returns a leaf.
// Inner nodes are rounded to T, the root when it is stored.
template <class T, int kRows, class Load>
[[gnu::always_inline]] inline Line sum_column(int first, const Load& load) {
  if constexpr (kRows == 1) {
    return load(first);
  } else {
    constexpr int kLeft = std::bit_floor(static_cast<unsigned>(kRows - 1));
    constexpr int kRight = kRows - kLeft;
    const Line left = sum_column<T, kLeft>(first, load);
    const Line right = sum_column<T, kRight>(first + kLeft, load);
    return (kLeft == 1 ? left : rounded<T>(left)) + (kRight == 1 ? right : rounded<T>(right));
  }
}

// Sums columns [begin, end) of the rows into each of `sums`, which may be rows. Requires: end -
// begin is a multiple of kLineLanes.
template <class T, int kRows>
void sum_rows(const T* const* rows, std::span<T* const> sums, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += kLineLanes) {
    const Line root = sum_column<T, kRows>(0, [=](int row) { return load_line(rows[row] + i); });
    for (T* sum : sums) store_line(root, sum + i);
  }
}

template <class T>
using SumRows = void (*)(const T* const*, std::span<T* const>, int64_t, int64_t);

inline constexpr int64_t kMaxRows = 16;  // a power of two: a complete subtree of any larger tree

template <class T>
SumRows<T> sum_rows_of(int64_t rows) {
  return [rows]<int... kRows>(std::integer_sequence<int, kRows...>) {
    static constexpr SumRows<T> kTable[] = {sum_rows<T, kRows + 1>...};
    return kTable[rows - 1];
  }(std::make_integer_sequence<int, kMaxRows>{});
}

// Sums any number of columns of 1 to kMaxRows rows into each of `sums`, which may be rows.
template <class T>
void sum_few_rows(std::span<const T* const> rows,
                  std::span<T* const> sums,
                  int64_t begin,
                  int64_t end) {
  const SumRows<T> sum = sum_rows_of<T>(static_cast<int64_t>(rows.size()));
  const int64_t lines_end = end - (end - begin) % kLineLanes;
  sum(rows.data(), sums, begin, lines_end);
  if (lines_end == end) return;

  std::array<std::array<T, kLineLanes>, kMaxRows> rest{};
  std::array<const T*, kMaxRows> rest_rows{};
  for (size_t row = 0; row < rows.size(); ++row) {
    std::copy(rows[row] + lines_end, rows[row] + end, rest[row].begin());
    rest_rows[row] = rest[row].data();
  }
  T* first = rest[0].data();
  sum(rest_rows.data(), {&first, 1}, 0, kLineLanes);
  for (T* to : sums) std::copy(first, first + (end - lines_end), to + lines_end);
}

inline constexpr int64_t kBlock = 256;  // columns at a time, so that nodes stay in the L1 cache

constexpr int64_t subtrees_of(int64_t rows) {
  return ceil_div<int64_t>(rows, kMaxRows);
}

// Elements of scratch memory that sum_block needs.
constexpr int64_t block_scratch(int64_t rows) {
  return (subtrees_of(rows) + kMaxRows) * kBlock;
}

// Sums at most kBlock columns of any number of rows: rounds leaves, sums subtrees of kMaxRows rows,
// then the tree over those.
template <class Leaf, class Node>
void sum_block(std::span<const Leaf* const> rows,
               std::span<Node* const> sums,
               int64_t begin,
               int64_t end,
               Node* scratch) {
  const int64_t subtrees = subtrees_of(static_cast<int64_t>(rows.size()));
  Node* leaves = scratch + subtrees * kBlock;
  for (int64_t k = 0; k < subtrees; ++k) {
    const auto first = static_cast<size_t>(k * kMaxRows);
    const auto part = rows.subspan(first, std::min<size_t>(kMaxRows, rows.size() - first));
    std::array<const Node*, kMaxRows> subtree{};
    for (size_t row = 0; row < part.size(); ++row) {
      if constexpr (std::is_same_v<Leaf, Node>) {
        subtree[row] = part[row] + begin;
      } else {
        Node* leaf = leaves + static_cast<int64_t>(row) * kBlock;
        convert(part[row] + begin, end - begin, leaf);
        subtree[row] = leaf;
      }
    }
    Node* node = scratch + k * kBlock;
    sum_few_rows<Node>({subtree.data(), part.size()}, {&node, 1}, 0, end - begin);
  }
  for_each_tree_merge(subtrees, [=](int64_t into, int64_t from) {
    Node* node = scratch + into * kBlock;
    const std::array<const Node*, 2> pair = {node, scratch + from * kBlock};
    sum_few_rows<Node>(pair, {&node, 1}, 0, end - begin);
  });
  for (Node* sum : sums) std::copy(scratch, scratch + (end - begin), sum + begin);
}

// sum_at(k)[i] = tree over r of row_at(r)[i], i < n; leaves are rounded to Node first. Both return
// pointers; a sum may be a row of the same type. Uses the stream's workspace.
template <class Leaf, class Node, class RowAt, class SumAt>
void sum_tree(Stream& stream,
              int64_t n,
              int64_t row_count,
              const RowAt& row_at,
              int64_t sum_count,
              const SumAt& sum_at) {
  const bool in_blocks = !std::is_same_v<Leaf, Node> || row_count > kMaxRows;
  const int64_t scratch_nodes = in_blocks ? block_scratch(row_count) : 0;
  const Workspace scratch =
      stream.workspace(static_cast<size_t>(row_count + sum_count) * sizeof(void*),
                       static_cast<size_t>(scratch_nodes) * sizeof(Node));
  auto** row_pointers = reinterpret_cast<const Leaf**>(scratch.shared);
  auto** sum_pointers = reinterpret_cast<Node**>(scratch.shared) + row_count;
  for (int64_t r = 0; r < row_count; ++r) row_pointers[r] = row_at(r);
  for (int64_t k = 0; k < sum_count; ++k) sum_pointers[k] = sum_at(k);
  const std::span<const Leaf* const> rows(row_pointers, static_cast<size_t>(row_count));
  const std::span<Node* const> sums(sum_pointers, static_cast<size_t>(sum_count));

  if constexpr (std::is_same_v<Leaf, Node>) {
    if (!in_blocks) {
      for_ranges(stream, n, [=](int64_t begin, int64_t end) {
        sum_few_rows<Node>(rows, sums, begin, end);
      });
      return;
    }
  }
  stream.fork(ceil_div(n, kBlock), [=](int64_t task, int worker) {
    const int64_t begin = task * kBlock;
    auto* nodes = reinterpret_cast<Node*>(scratch.of(worker));
    sum_block(rows, sums, begin, std::min(n, begin + kBlock), nodes);
  });
}

}  // namespace lockstep::kernels::LS_CPU
