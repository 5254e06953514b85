// One launch for many tensors: a table of them is the kernel's argument, and each block takes a
// chunk of one tensor. If a table cannot hold all tensors there are several launches.
#pragma once

#include <algorithm>

#include "core/cuda/launch.h"
#include "core/dtype.h"
#include "kernels/support/cuda/pack.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kMultiTensorThreads = 256;
constexpr size_t kTableBytes = 3840;  // of the 4 KB of arguments that a kernel may have

// Elements [begin, end) of one tensor; those before packed_end are accessed 16 bytes at a time.
struct Chunk {
  int tensor;  // index in the table
  int64_t begin, packed_end, end;
};

// Entry: the data of one tensor that the kernel needs.
template <class Entry>
struct TensorTable {
  static constexpr int kCapacity =
      static_cast<int>((kTableBytes - 16) / (sizeof(Entry) + sizeof(int64_t) + sizeof(int) + 1));

  Entry entries[kCapacity];
  int64_t sizes[kCapacity];
  int first_block[kCapacity + 1];
  bool packed[kCapacity];
  int count = 0;

  __device__ int tensor_of(int block) const {
    int low = 0;
    int high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_block[middle] <= block ? low : high) = middle;
    }
    return low;
  }

  // The chunk of a block. Chunks have `size` elements, a multiple of `pack`, the elements per pack.
  __device__ Chunk chunk_of(int block, int size, int pack) const {
    const int tensor = tensor_of(block);
    const int64_t begin = int64_t{block - first_block[tensor]} * size;
    const int64_t end = min(begin + size, sizes[tensor]);
    const int64_t packed_end = packed[tensor] ? end - (end - begin) % pack : begin;
    return {tensor, begin, packed_end, end};
  }

  __host__ __device__ int blocks_of(int tensor) const {
    return first_block[tensor + 1] - first_block[tensor];
  }
  unsigned blocks() const { return static_cast<unsigned>(first_block[count]); }
};

// At least one, since a tensor without elements has an empty chunk.
inline int64_t tensor_chunks(int64_t size, int64_t chunk) {
  return std::max(int64_t{1}, (size + chunk - 1) / chunk);
}

// A table's row for one tensor. `packed`: its memory may be accessed 16 bytes at a time.
template <class Entry>
struct TableRow {
  Entry entry;
  int64_t size;
  bool packed;
};

// Calls body(table) with tables of make(item), a TableRow<Entry>, for each item. A block takes a
// chunk of `chunk` elements.
template <class Entry, class Items, class Make, class Body>
void for_tables(Items& items, int64_t chunk, const Make& make, const Body& body) {
  using Table = TensorTable<Entry>;
  static_assert(sizeof(Table) <= kTableBytes);
  Table table = {};
  for (auto& item : items) {
    const TableRow<Entry> row = make(item);
    if (table.count == Table::kCapacity) {
      body(table);
      table.count = 0;
    }
    const int at = table.count++;
    table.entries[at] = row.entry;
    table.sizes[at] = row.size;
    table.packed[at] = row.packed;
    table.first_block[at + 1] =
        table.first_block[at] + static_cast<int>(tensor_chunks(row.size, chunk));
  }
  if (table.count > 0) body(table);
}

}  // namespace
}  // namespace lockstep::kernels::cuda
