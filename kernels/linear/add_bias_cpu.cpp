#include "core/round_up.h"
#include "kernels/linear/add_bias.h"
#include "kernels/support/column_sum.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

[[gnu::always_inline]] inline Line sum_of(const Line& a, const Line& b) {
  return a + b;
}

// Sums of columns [first, first + width) of a chunk into lanes[0, width).
// Requires: lanes has room for kSumLanes * width floats.
template <class T>
void sum_tile(
    const T* rows, int64_t row_count, int64_t columns, int64_t first, int64_t width, float* lanes) {
  std::fill_n(lanes, kSumLanes * width, 0.0F);
  const int64_t rows_at_once = width == columns ? kSumLanes : 1;  // adjacent in memory
  for (int64_t r = 0; r < row_count; r += rows_at_once) {
    const int64_t count = std::min(rows_at_once, row_count - r) * width;
    float* const to = lanes + (rows_at_once == 1 ? r % kSumLanes * width : 0);
    map_lines(count, to, sum_of, to, rows + r * columns + first);
  }
  for_each_tree_merge(kSumLanes, [=](int64_t into, int64_t from) {
    map_lines(width, lanes + into * width, sum_of, lanes + into * width, lanes + from * width);
  });
}

constexpr int64_t kTileColumns = 256;  // the lanes of a tile fit into the L1 cache

// Row i of sums = the sums of chunk i. `sums` may be `rows`.
template <class T>
void sum_chunks(const T* rows, int64_t row_count, int64_t columns, float* lanes, float* sums) {
  for (int64_t i = 0; i < chunks_of(row_count); ++i) {
    const int64_t begin = i * kChunkRows;
    const int64_t count = std::min(kChunkRows, row_count - begin);
    for (int64_t first = 0; first < columns; first += kTileColumns) {
      const int64_t width = std::min(kTileColumns, columns - first);
      sum_tile(rows + begin * columns, count, columns, first, width, lanes);
      std::copy_n(lanes, width, sums + i * columns + first);
    }
  }
}

}  // namespace

void add_bias_forward(Stream& stream, const Tensor& in, const Tensor& bias, Tensor& out) {
  if (in.numel() == 0) return;
  const int64_t channels = bias.numel();
  const int64_t rows = in.numel() / channels;
  const int64_t rows_at_once =
      1 + 256 / channels;  // rows to a pattern, so that few channels fill lines
  const Workspace workspace =
      stream.workspace(static_cast<size_t>(rows_at_once * channels) * sizeof(float), 0);
  auto* pattern = reinterpret_cast<float*>(workspace.shared);
  for (int64_t r = 0; r < rows_at_once; ++r) {
    std::copy_n(bias.data<float>(), channels, pattern + r * channels);
  }
  const int64_t tasks = ceil_div(rows, rows_at_once);
  const int64_t parts = in.numel() < kElementsPerFork ? 1 : stream.threads();
  dispatch_float(in.dtype(), [&]<class T>() {
    const T* from = in.data<T>();
    T* to = out.data<T>();
    stream.fork(parts, [=](int64_t part, int) {
      for (int64_t task = tasks * part / parts; task < tasks * (part + 1) / parts; ++task) {
        const int64_t at = task * rows_at_once * channels;
        const int64_t count = std::min(rows_at_once, rows - task * rows_at_once) * channels;
        map_lines(count, to + at, sum_of, from + at, pattern);
      }
    });
  });
}

void add_bias_backward(Stream& stream,
                       const Shards& shards,
                       const Tensor& grad_out,
                       Tensor& grad_bias) {
  const Shape& shape = grad_out.shape();
  const int64_t channels = shape[1];
  const int64_t pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
  int64_t most_chunks = 0;
  for (int64_t k = 0; k < shards.local(); ++k) {
    most_chunks = std::max(most_chunks, chunks_of(shards.count(k) * pixels));
  }
  const int64_t lane_floats = kSumLanes * std::min(channels, kTileColumns);
  const Workspace workspace = stream.workspace(
      0, static_cast<size_t>(lane_floats + most_chunks * channels) * sizeof(float));
  dispatch_float(grad_out.dtype(), [&]<class T>() {
    const T* from = grad_out.data<T>();
    float* to = grad_bias.data<float>();
    stream.fork(shards.local(), [=, &shards](int64_t k, int worker) {
      auto* lanes = reinterpret_cast<float*>(workspace.of(worker));
      float* sums = lanes + lane_floats;
      int64_t rows = shards.count(k) * pixels;
      sum_chunks(from + shards.begin(k) * pixels * channels, rows, channels, lanes, sums);
      for (rows = chunks_of(rows); rows > 1; rows = chunks_of(rows)) {
        sum_chunks(static_cast<const float*>(sums), rows, channels, lanes, sums);
      }
      std::copy_n(sums, channels, to + k * channels);
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
