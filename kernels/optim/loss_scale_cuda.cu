// check_finite: one thread per pack of 16 bytes, one block per chunk. Traffic: each element is read
// once. Bound: DRAM. The others: one thread, 32 bytes. Bound: launch latency.
#include "kernels/support/cuda/multi_tensor.cuh"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/optim/loss_scale_rule.h"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kFiniteChunk = 16384;

struct FiniteEntry {
  const void* values;
  Dtype dtype;
};
using FiniteTable = TensorTable<FiniteEntry>;

template <class Bits>
__device__ bool holds_not_finite(const void* values, const Chunk& chunk, Bits exponent) {
  constexpr int kPack = 16 / sizeof(Bits);
  const auto* bits = static_cast<const Bits*>(values);
  const int thread = static_cast<int>(threadIdx.x);
  bool found = false;
  for (int64_t i = chunk.begin + thread * kPack; i < chunk.packed_end;
       i += kMultiTensorThreads * kPack) {
    const Pack<Bits, kPack> pack = load_pack<kPack>(bits + i);
#pragma unroll
    for (int k = 0; k < kPack; ++k) found |= exponent_is_full(pack[k], exponent);
  }
  for (int64_t i = chunk.packed_end + thread; i < chunk.end; i += kMultiTensorThreads)
    found |= exponent_is_full(bits[i], exponent);
  return found;
}

__global__ void __launch_bounds__(kMultiTensorThreads)
    check_finite_kernel(const __grid_constant__ FiniteTable table, LossScaleState* state) {
  const Chunk chunk = table.chunk_of(static_cast<int>(blockIdx.x), kFiniteChunk, 8);
  const FiniteEntry entry = table.entries[chunk.tensor];
  bool found = false;
  if (entry.dtype == Dtype::kF32) {
    found = holds_not_finite<uint32_t>(entry.values, chunk, 0x7f800000U);
  } else {
    const auto exponent = static_cast<uint16_t>(entry.dtype == Dtype::kF16 ? 0x7c00 : 0x7f80);
    found = holds_not_finite<uint16_t>(entry.values, chunk, exponent);
  }
  if (__syncthreads_or(found ? 1 : 0) != 0 && threadIdx.x == 0) atomicOr(&state->found_inf, 1);
}

__global__ void __launch_bounds__(32)
    loss_scale_init_kernel(const LossScaleState initial, LossScaleState* state) {
  if (threadIdx.x == 0) *state = initial;
}

__global__ void __launch_bounds__(32)
    loss_scale_update_kernel(const LossScaleRule rule, LossScaleState* state) {
  if (threadIdx.x == 0) end_step(*state, rule);
}

__global__ void __launch_bounds__(kMultiTensorThreads)
    loss_scale_seed_kernel(const LossScaleState* state, float* seeds, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kMultiTensorThreads + threadIdx.x;
  if (i < count) seeds[i] = state->scale;
}

constexpr lockstep::cuda::LaunchShape kOneWarp = {1, 32};

}  // namespace

void loss_scale_init(Stream& stream, const LossScaleState& initial, Tensor& state) {
  lockstep::cuda::launch(
      stream, "loss_scale_init", kOneWarp, loss_scale_init_kernel, initial, state_in(state));
}

void loss_scale_seed(Stream& stream, const Tensor& state, Tensor& seeds) {
  const int64_t count = seeds.numel();
  lockstep::cuda::launch(
      stream,
      "loss_scale_seed",
      {lockstep::cuda::blocks_for(count, kMultiTensorThreads), kMultiTensorThreads},
      loss_scale_seed_kernel,
      state_in(state),
      seeds.data<float>(),
      count);
}

void check_finite(Stream& stream, std::span<const Tensor> buckets, Tensor& state) {
  const auto row_of = [](const Tensor& bucket) {
    return TableRow<FiniteEntry>{.entry = {.values = bucket.bytes(), .dtype = bucket.dtype()},
                                 .size = bucket.numel(),
                                 .packed = aligned({bucket.bytes()})};
  };
  for_tables<FiniteEntry>(buckets, kFiniteChunk, row_of, [&](const FiniteTable& table) {
    lockstep::cuda::launch(stream,
                           "check_finite",
                           {table.blocks(), kMultiTensorThreads},
                           check_finite_kernel,
                           table,
                           state_in(state));
  });
}

void loss_scale_update(Stream& stream, const LossScaleRule& rule, Tensor& state) {
  lockstep::cuda::launch(
      stream, "loss_scale_update", kOneWarp, loss_scale_update_kernel, rule, state_in(state));
}

}  // namespace lockstep::kernels::cuda
