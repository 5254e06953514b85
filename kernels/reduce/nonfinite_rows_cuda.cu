// One block per row; with more rows each block loops over several. A thread takes a pack of 16
// bytes at a time if rows are aligned. Traffic: each element is read once, 4 bytes per row are
// written. Bound: DRAM; latency if there are few rows.
#include <algorithm>

#include "core/cuda/launch.h"
#include "kernels/reduce/nonfinite_rows.h"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/pack.cuh"
#include "kernels/support/cuda/reduce.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kRowThreads = 256;
constexpr int64_t kMaxRowBlocks = 1024;  // 132 SMs hold 1,056 at a time

template <class Bits>
__device__ int count_of_thread(const Bits* row, int64_t length, int64_t packed, Bits exponent) {
  constexpr int kPack = 16 / sizeof(Bits);
  const auto thread = static_cast<int64_t>(threadIdx.x);
  int count = 0;
  for (int64_t i = thread * kPack; i < packed; i += kRowThreads * kPack) {
    const Pack<Bits, kPack> pack = load_pack<kPack>(row + i);
#pragma unroll
    for (int k = 0; k < kPack; ++k) count += exponent_is_full(pack[k], exponent) ? 1 : 0;
  }
  for (int64_t i = packed + thread; i < length; i += kRowThreads)
    count += exponent_is_full(row[i], exponent) ? 1 : 0;
  return count;
}

template <class Bits>
__global__ void __launch_bounds__(kRowThreads) nonfinite_rows_kernel(
    const Bits* in, int64_t rows, int64_t length, int64_t packed, Bits exponent, int32_t* counts) {
  __shared__ int scratch[kMaxWarps];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int count = count_of_thread(in + row * length, length, packed, exponent);
    count = block_reduce(count, scratch, [](int a, int b) { return a + b; });
    if (threadIdx.x == 0) counts[row] = count;
    __syncthreads();
  }
}

template <class Bits>
void launch_rows(Stream& stream, const Tensor& in, Bits exponent, Tensor& counts) {
  constexpr int64_t kPack = 16 / sizeof(Bits);
  const int64_t rows = in.shape()[0];
  const int64_t length = in.shape().stride0();
  const bool packs = aligned({in.bytes()}) && (rows == 1 || length % kPack == 0);
  lockstep::cuda::launch(stream,
                         "nonfinite_rows",
                         {static_cast<unsigned>(std::min(rows, kMaxRowBlocks)), kRowThreads},
                         nonfinite_rows_kernel<Bits>,
                         reinterpret_cast<const Bits*>(in.bytes()),
                         rows,
                         length,
                         packs ? length / kPack * kPack : 0,
                         exponent,
                         counts.data<int32_t>());
}

}  // namespace

void nonfinite_rows(Stream& stream, const Tensor& in, Tensor& counts) {
  if (in.dtype() == Dtype::kF32) return launch_rows<uint32_t>(stream, in, 0x7f800000U, counts);
  const auto exponent = static_cast<uint16_t>(in.dtype() == Dtype::kF16 ? 0x7c00 : 0x7f80);
  launch_rows<uint16_t>(stream, in, exponent, counts);
}

}  // namespace lockstep::kernels::cuda
