// Code that optimizer kernels share: access to gradients and copies of any float type, with f32
// master values, and the kernel itself.
#pragma once

#include "kernels/support/cuda/multi_tensor.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kOptimizerPack = 8;      // elements that a thread takes at once
constexpr int kOptimizerChunk = 8192;  // elements per block

// Loads elements [first, first + n) times `factor`.
template <int n, class T>
__device__ __forceinline__ Pack<float, n> load_scaled(const void* from,
                                                      int64_t first,
                                                      float factor) {
  const Pack<T, n> pack = load_pack<n>(static_cast<const T*>(from) + first);
  Pack<float, n> scaled;
#pragma unroll
  for (int i = 0; i < n; ++i) scaled[i] = to_float(pack[i]) * factor;
  return scaled;
}

template <int n>
__device__ __forceinline__ Pack<float, n> load_scaled(const void* from,
                                                      Dtype dtype,
                                                      int64_t first,
                                                      float factor) {
  if (dtype == Dtype::kF16) return load_scaled<n, __half>(from, first, factor);
  if (dtype == Dtype::kBF16) return load_scaled<n, __nv_bfloat16>(from, first, factor);
  return load_scaled<n, float>(from, first, factor);
}

template <class T, int n>
__device__ __forceinline__ void store_rounded(const Pack<float, n>& values,
                                              void* to,
                                              int64_t first) {
  Pack<T, n> pack;
#pragma unroll
  for (int i = 0; i < n; ++i) pack[i] = from_float<T>(values[i]);
  store_pack(static_cast<T*>(to) + first, pack);
}

// The model's f16 or bf16 copy of a master value; null if there is none.
struct WeightCopy {
  void* values;
  bool bfloat16;

  template <int n>
  __device__ __forceinline__ void store(const Pack<float, n>& master, int64_t first) const {
    if (values == nullptr) return;
    if (bfloat16) {
      store_rounded<__nv_bfloat16>(master, values, first);
    } else {
      store_rounded<__half>(master, values, first);
    }
  }
};

inline WeightCopy copy_in(Tensor& copy) {
  return {copy.bytes(), copy.dtype() == Dtype::kBF16};
}

// A body has the types Entry, the data of one tensor, and Now, the values that are the same for all
// elements of the step, with a bool skip; Now now() const, called once per block; and template <int
// n> void run(const Entry&, int64_t first, const Now&) const for n elements.
template <class Body>
__global__ void __launch_bounds__(kMultiTensorThreads)
    optimizer_kernel(const __grid_constant__ TensorTable<typename Body::Entry> table,
                     const Body body) {
  __shared__ typename Body::Now shared_now;
  if (threadIdx.x == 0) shared_now = body.now();
  __syncthreads();
  const typename Body::Now now = shared_now;
  if (now.skip) return;
  const Chunk chunk = table.chunk_of(static_cast<int>(blockIdx.x), kOptimizerChunk, kOptimizerPack);
  const typename Body::Entry entry = table.entries[chunk.tensor];
  const int thread = static_cast<int>(threadIdx.x);
  constexpr int kStride = kMultiTensorThreads * kOptimizerPack;
  for (int64_t i = chunk.begin + thread * kOptimizerPack; i < chunk.packed_end; i += kStride)
    body.template run<kOptimizerPack>(entry, i, now);
  for (int64_t i = chunk.packed_end + thread; i < chunk.end; i += kMultiTensorThreads)
    body.template run<1>(entry, i, now);
}

// row_of(slot) returns the slot's TableRow.
template <class Body, class Slots, class RowOf>
void launch_optimizer(
    Stream& stream, const char* op, Slots& slots, const RowOf& row_of, const Body& body) {
  using Entry = typename Body::Entry;
  for_tables<Entry>(slots, kOptimizerChunk, row_of, [&](const TensorTable<Entry>& table) {
    lockstep::cuda::launch(
        stream, op, {table.blocks(), kMultiTensorThreads}, optimizer_kernel<Body>, table, body);
  });
}

}  // namespace
}  // namespace lockstep::kernels::cuda
