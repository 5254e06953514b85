// First one block per chunk, of which a thread takes every 256th group of four elements; then one
// block per tensor sums its chunks, and one block sums the tensors. Traffic: each element is read
// once; 8 bytes per chunk are written and read. Bound: DRAM; arithmetic for f16 on a GPU with few
// f64 units.
#include "kernels/reduce/tensor_norms.h"
#include "kernels/support/cuda/multi_tensor.cuh"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/reduce.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kNormThreads = kMultiTensorThreads;
constexpr int kNormPack = 4;
static_assert(kNormThreads * kNormPack == kNormAccumulators);

struct NormEntry {
  const void* values;
  Dtype dtype;
  int tensor;
  double* chunk_sums;
};
using NormTable = TensorTable<NormEntry>;

// Returns the sum of the thread's accumulators, in the tree's order.
template <class T>
__device__ double squares_of_thread(const void* from, const Chunk& chunk) {
  const T* values = static_cast<const T*>(from);
  double sums[kNormPack] = {};
  int64_t i = chunk.begin + static_cast<int>(threadIdx.x) * kNormPack;
#pragma unroll 4
  for (; i < chunk.packed_end; i += kNormThreads * kNormPack) {
    const Pack<T, kNormPack> pack = load_pack<kNormPack>(values + i);
#pragma unroll
    for (int k = 0; k < kNormPack; ++k) {
      const double x = to_float(pack[k]);
      sums[k] += x * x;
    }
  }
  for (; i < chunk.end; i += kNormThreads * kNormPack) {
#pragma unroll
    for (int k = 0; k < kNormPack; ++k) {
      if (i + k < chunk.end) {
        const double x = to_float(values[i + k]);
        sums[k] += x * x;
      }
    }
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

__global__ void __launch_bounds__(kNormThreads)
    norm_chunks_kernel(const __grid_constant__ NormTable table) {
  __shared__ double scratch[kNormThreads / 32];
  const Chunk chunk = table.chunk_of(static_cast<int>(blockIdx.x), kNormChunk, kNormPack);
  const NormEntry entry = table.entries[chunk.tensor];
  double sum = 0;
  if (entry.dtype == Dtype::kF32) {
    sum = squares_of_thread<float>(entry.values, chunk);
  } else if (entry.dtype == Dtype::kF16) {
    sum = squares_of_thread<__half>(entry.values, chunk);
  } else {
    sum = squares_of_thread<__nv_bfloat16>(entry.values, chunk);
  }
  sum = block_tree_sum<kNormThreads>(sum, scratch);
  if (threadIdx.x == 0) entry.chunk_sums[chunk.begin / kNormChunk] = sum;
}

// Sums by core/tree.h's tree, in one block. Overwrites the leaves.
__device__ double sum_in_place(double* leaves, int64_t count) {
  for (int64_t stride = 1; stride < count; stride *= 2) {
    for (int64_t into = 2 * stride * threadIdx.x; into + stride < count;
         into += 2 * stride * kNormThreads) {
      leaves[into] += leaves[into + stride];
    }
    __syncthreads();
  }
  return count > 0 ? leaves[0] : 0;
}

__global__ void __launch_bounds__(kNormThreads)
    norm_tensors_kernel(const __grid_constant__ NormTable table, double* sums, float* norms) {
  const auto at = static_cast<int>(blockIdx.x);
  const double sum = sum_in_place(table.entries[at].chunk_sums, table.blocks_of(at));
  if (threadIdx.x != 0) return;
  sums[table.entries[at].tensor] = sum;
  norms[table.entries[at].tensor] = static_cast<float>(sqrt(sum));
}

__global__ void __launch_bounds__(kNormThreads)
    total_norm_kernel(double* sums, int64_t tensors, float* norm) {
  const double sum = sum_in_place(sums, tensors);
  if (threadIdx.x == 0) *norm = static_cast<float>(sqrt(sum));
}

}  // namespace

void tensor_norms(Stream& stream, std::span<const Tensor> tensors, Tensor& norms) {
  using lockstep::cuda::launch;
  const auto n = static_cast<int64_t>(tensors.size());
  int64_t chunks = 0;
  for (const Tensor& tensor : tensors) chunks += tensor_chunks(tensor.numel(), kNormChunk);
  const Workspace memory = stream.workspace(static_cast<size_t>(n + chunks) * sizeof(double), 0);
  auto* sums = reinterpret_cast<double*>(memory.shared);
  double* chunk_sums = sums + n;
  float* to = norms.data<float>();
  int next = 0;
  const auto row_of = [&](const Tensor& tensor) {
    const NormEntry entry = {.values = tensor.bytes(),
                             .dtype = tensor.dtype(),
                             .tensor = next++,
                             .chunk_sums = chunk_sums};
    chunk_sums += tensor_chunks(tensor.numel(), kNormChunk);
    return TableRow<NormEntry>{entry, tensor.numel(), aligned({entry.values})};
  };
  for_tables<NormEntry>(tensors, kNormChunk, row_of, [&](const NormTable& table) {
    const auto in_table = static_cast<unsigned>(table.count);
    launch(stream, "tensor_norms", {table.blocks(), kNormThreads}, norm_chunks_kernel, table);
    launch(stream, "tensor_norms", {in_table, kNormThreads}, norm_tensors_kernel, table, sums, to);
  });
  launch(stream, "tensor_norms", {1, kNormThreads}, total_norm_kernel, sums, n, to + n);
}

}  // namespace lockstep::kernels::cuda
