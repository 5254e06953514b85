#include <cmath>

#include "core/round_up.h"
#include "core/tree.h"
#include "kernels/reduce/tensor_norms.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

int64_t chunks_of(const Tensor& tensor) {
  return ceil_div(tensor.numel(), kNormChunk);
}

// The sum in core/tree.h's order; 0 without leaves. Overwrites the leaves.
double sum_tree_of(double* leaves, int64_t count) {
  for_each_tree_merge(count, [=](int64_t into, int64_t from) { leaves[into] += leaves[from]; });
  return count > 0 ? leaves[0] : 0;
}

struct Scratch {
  double sums[kNormAccumulators];
  float row[kNormAccumulators];
};

template <class T>
double sum_chunk(const T* values, int64_t count, Scratch& scratch) {
  std::fill(scratch.sums, scratch.sums + kNormAccumulators, 0.0);
  for (int64_t first = 0; first < count; first += kNormAccumulators) {
    const int64_t n = std::min(kNormAccumulators, count - first);
    convert(values + first, n, scratch.row);
    for (int64_t i = 0; i < n; ++i) {
      const double x = scratch.row[i];
      scratch.sums[i] += x * x;
    }
  }
  return sum_tree_of(scratch.sums, kNormAccumulators);
}

}  // namespace

void tensor_norms(Stream& stream, std::span<const Tensor> tensors, Tensor& norms) {
  const auto n = static_cast<int64_t>(tensors.size());
  int64_t most_chunks = 0;
  for (const Tensor& tensor : tensors) most_chunks = std::max(most_chunks, chunks_of(tensor));
  const Workspace memory =
      stream.workspace(static_cast<size_t>(n + most_chunks) * sizeof(double), sizeof(Scratch));
  auto* sums = reinterpret_cast<double*>(memory.shared);
  double* chunk_sums = sums + n;
  float* to = norms.data<float>();
  for (int64_t i = 0; i < n; ++i) {
    const Tensor& tensor = tensors[static_cast<size_t>(i)];
    stream.fork(chunks_of(tensor), [&](int64_t chunk, int worker) {
      const int64_t first = chunk * kNormChunk;
      const int64_t count = std::min(kNormChunk, tensor.numel() - first);
      auto& scratch = *reinterpret_cast<Scratch*>(memory.of(worker));
      dispatch_float(tensor.dtype(), [&]<class T>() {
        chunk_sums[chunk] = sum_chunk(tensor.data<T>() + first, count, scratch);
      });
    });
    sums[i] = sum_tree_of(chunk_sums, chunks_of(tensor));
    to[i] = static_cast<float>(std::sqrt(sums[i]));
  }
  to[n] = static_cast<float>(std::sqrt(sum_tree_of(sums, n)));
}

}  // namespace lockstep::kernels::LS_CPU
