// Sums of the columns of each shard's rows, in the order of kernels/support/column_sum.h.
// A block of up to kTile columns and 16 lanes of rows sums a chunk, in one launch per level of
// chunks: one up to 256 rows, two up to 65,536, three up to 16.8 million. Traffic: each element is
// read once, and 1/256 of their number is written and read again as floats. Bound: DRAM.
#pragma once

#include <algorithm>
#include <utility>

#include "core/cuda/launch.h"
#include "kernels/support/column_sum.h"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/pack.cuh"
#include "kernels/support/cuda/shards.cuh"

namespace lockstep::kernels::cuda {
namespace {

// Shard k has rows [row[k], row[k + 1]) and chunks [chunk[k], chunk[k + 1]), at least one.
struct ChunkTable {
  int count = 0;
  int64_t row[kMaxShardsOfRank + 1] = {};
  int chunk[kMaxShardsOfRank + 1] = {};

  int chunks() const { return chunk[count]; }
  __device__ int shard_of(int of_chunk) const {
    int shard = 0;
    for (int end = count; end - shard > 1;) {
      const int middle = (shard + end) / 2;
      if (chunk[middle] <= of_chunk) {
        shard = middle;
      } else {
        end = middle;
      }
    }
    return shard;
  }
};

inline void cut_rows(ChunkTable& table) {
  for (int k = 0; k < table.count; ++k) {
    table.chunk[k + 1] =
        table.chunk[k] + static_cast<int>(chunks_of(table.row[k + 1] - table.row[k]));
  }
}

// The table for images of `pixels` rows each.
inline ChunkTable chunk_table(const Shards& shards, int64_t pixels) {
  const ShardTable images = shard_table(shards);
  ChunkTable table;
  table.count = images.count;
  for (int k = 0; k <= table.count; ++k) table.row[k] = images.begin[k] * pixels;
  cut_rows(table);
  return table;
}
// The table whose rows are the chunks of `table`.
inline ChunkTable next_level(const ChunkTable& table) {
  ChunkTable next;
  next.count = table.count;
  for (int k = 0; k <= table.count; ++k) next.row[k] = table.chunk[k];
  cut_rows(next);
  return next;
}

constexpr int kColumnSumThreads = 256;
constexpr int kTile = 64;  // columns, at most

// Row c of sums is the sum of chunk c. A thread takes `width` adjacent columns.
template <class T, int width>
__global__ void __launch_bounds__(kColumnSumThreads) column_sum_kernel(
    const T* rows, int64_t columns, const __grid_constant__ ChunkTable table, float* sums) {
  __shared__ float lanes[kSumLanes][kTile];
  const int chunk = static_cast<int>(blockIdx.x);
  const int shard = table.shard_of(chunk);
  const int64_t first_row = table.row[shard] + (chunk - table.chunk[shard]) * kChunkRows;
  const int64_t rows_left = table.row[shard + 1] - first_row;
  const int row_count = static_cast<int>(rows_left < kChunkRows ? rows_left : kChunkRows);
  const int tile = static_cast<int>(blockDim.x) * width;
  const int64_t first_column = int64_t{blockIdx.y} * tile;
  const int64_t column = first_column + threadIdx.x * width;

  float sum[width] = {};
  if (column < columns) {
    const T* from = rows + first_row * columns + column;
#pragma unroll 4
    for (int r = static_cast<int>(threadIdx.y); r < row_count; r += kSumLanes) {
      const Pack<T, width> pack = load_pack<width>(from + r * columns);
#pragma unroll
      for (int i = 0; i < width; ++i) sum[i] += to_float(pack[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < width; ++i) lanes[threadIdx.y][threadIdx.x * width + i] = sum[i];
  __syncthreads();

  const int place = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  if (place < tile && first_column + place < columns) {
    float node[kSumLanes];
#pragma unroll
    for (int lane = 0; lane < kSumLanes; ++lane) node[lane] = lanes[lane][place];
#pragma unroll
    for (int stride = 1; stride < kSumLanes; stride *= 2) {
#pragma unroll
      for (int into = 0; into < kSumLanes; into += 2 * stride) node[into] += node[into + stride];
    }
    sums[chunk * columns + first_column + place] = node[0];
  }
}

template <class T, int width>
void launch_column_sum(Stream& stream,
                       const char* op,
                       const T* rows,
                       int64_t columns,
                       const ChunkTable& table,
                       float* sums) {
  constexpr int kMaxThreads = std::min(kColumnSumThreads / kSumLanes, kTile / width);
  int threads = 2;  // a warp, with the 16 lanes
  while (threads < kMaxThreads && threads * width < columns) threads *= 2;
  lockstep::cuda::launch(stream,
                         op,
                         {dim3(static_cast<unsigned>(table.chunks()),
                               lockstep::cuda::blocks_for(columns, int64_t{threads} * width)),
                          dim3(static_cast<unsigned>(threads), kSumLanes)},
                         column_sum_kernel<T, width>,
                         rows,
                         columns,
                         table,
                         sums);
}

template <class T>
void sum_chunks(Stream& stream,
                const char* op,
                const T* rows,
                int64_t columns,
                const ChunkTable& table,
                float* sums) {
  constexpr int kWidth = 16 / sizeof(T);
  if (columns % kWidth == 0 && aligned({rows})) {
    launch_column_sum<T, kWidth>(stream, op, rows, columns, table, sums);
  } else {
    launch_column_sum<T, 1>(stream, op, rows, columns, table, sums);
  }
}

template <class T>
struct ImageRows {
  const T* rows;
  int64_t pixels, columns;  // pixels: rows per image
};

// sums[k,c] = sum over shard k's rows of rows[r,c]. Uses the stream's workspace. Errors: as
// shard_table().
template <class T>
void sum_columns(
    Stream& stream, const char* op, const Shards& shards, const ImageRows<T>& images, float* sums) {
  const T* rows = images.rows;
  const int64_t columns = images.columns;
  ChunkTable table = chunk_table(shards, images.pixels);
  ChunkTable next = next_level(table);
  const int64_t first_floats = table.chunks() * columns;
  const int64_t second_floats = next.chunks() * columns;
  const Workspace workspace =
      stream.workspace(static_cast<size_t>(first_floats + second_floats) * sizeof(float), 0);
  auto* from = reinterpret_cast<float*>(workspace.shared);
  float* to = from + first_floats;
  const auto out_of = [&](const ChunkTable& level, float* scratch) {
    return level.chunks() == level.count ? sums : scratch;
  };
  sum_chunks(stream, op, rows, columns, table, out_of(table, from));
  while (table.chunks() > table.count) {
    sum_chunks(stream, op, static_cast<const float*>(from), columns, next, out_of(next, to));
    table = next;
    next = next_level(table);
    std::swap(from, to);
  }
}

}  // namespace
}  // namespace lockstep::kernels::cuda
