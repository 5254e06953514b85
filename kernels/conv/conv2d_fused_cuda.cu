// The definition as a sequence of plain kernels. It runs where there is no cuDNN, mainly under
// emulation; no run on a GPU chooses it.
// fused_norm_kernel: one thread per value. fused_sums_kernel: a warp covers 32 channels of a shard,
// and each of a block's 8 warps takes every 8th pixel; their sums are added in order. Traffic: each
// kernel reads a value once, and the first one writes it. Bound: DRAM.
#include "core/cuda/launch.h"
#include "kernels/conv/conv2d_fused.h"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/support/cuda/shards.cuh"

namespace lockstep::kernels::cuda {
namespace {

using lockstep::cuda::blocks_for;
using lockstep::cuda::launch;

constexpr int kFusedThreads = 256;
constexpr int kFusedLanes = 32;  // threadIdx.x: channels
constexpr int kFusedSlices = 8;  // threadIdx.y: pixels

template <class T>
__global__ void __launch_bounds__(kFusedThreads)
    fused_norm_kernel(const __grid_constant__ ShardTable shards,
                      const T* in,
                      const T* affine,
                      int64_t image_values,
                      int channels,
                      T* out) {
  const int64_t at = int64_t{blockIdx.x} * kFusedThreads + threadIdx.x;
  if (at >= shards.begin[shards.count] * image_values) return;
  const int shard = shard_of(shards, at / image_values);
  const T* scale = affine + int64_t{shard} * channels + at % channels;
  const T* shift = scale + int64_t{shards.count} * channels;
  const float value = __fmaf_rn(to_float(in[at]), to_float(*scale), to_float(*shift));
  out[at] = from_float<T>(value <= 0 ? 0.0F : value);
}

template <class T>
__global__ void __launch_bounds__(kFusedLanes* kFusedSlices)
    fused_sums_kernel(const __grid_constant__ ShardTable shards,
                      const T* values,
                      int64_t image_pixels,
                      int channels,
                      float* sums) {
  const int channel = static_cast<int>(blockIdx.x * kFusedLanes + threadIdx.x);
  const int64_t begin = shards.begin[blockIdx.y] * image_pixels;
  const int64_t end = shards.begin[blockIdx.y + 1] * image_pixels;
  float sum = 0;
  float square_sum = 0;
  if (channel < channels) {
    for (int64_t pixel = begin + threadIdx.y; pixel < end; pixel += kFusedSlices) {
      const float value = to_float(values[pixel * channels + channel]);
      sum += value;
      square_sum = __fmaf_rn(value, value, square_sum);
    }
  }
  __shared__ float slices[2][kFusedSlices][kFusedLanes];
  slices[0][threadIdx.y][threadIdx.x] = sum;
  slices[1][threadIdx.y][threadIdx.x] = square_sum;
  __syncthreads();
  if (threadIdx.y > 1 || channel >= channels) return;
  float all = 0;
#pragma unroll
  for (int i = 0; i < kFusedSlices; ++i) all += slices[threadIdx.y][i][threadIdx.x];
  sums[(int64_t{threadIdx.y} * shards.count + blockIdx.y) * channels + channel] = all;
}

Tensor normed(
    Stream& stream, const char* op, const Shards& shards, const Tensor& in, const Tensor& affine) {
  if (!affine.defined()) return in;
  Tensor out = Tensor::empty(in.shape(), in.dtype(), Device::kCuda);
  with_float_type(in.dtype(), [&]<class T>() {
    launch(stream,
           op,
           {blocks_for(in.numel(), kFusedThreads), kFusedThreads},
           fused_norm_kernel<T>,
           shard_table(shards),
           elements<T>(in),
           elements<T>(affine),
           in.shape().stride0(),
           static_cast<int>(in.shape()[1]),
           elements<T>(out));
  });
  return out;
}

}  // namespace

void conv2d_fused_forward(Stream& stream,
                          const Shards& shards,
                          const Conv2dForwardArgs& args,
                          const Tensor& affine,
                          Tensor& sums) {
  constexpr const char* kOp = "conv2d_fused_forward";
  cuda::conv2d_forward(stream,
                       shards,
                       {.in = normed(stream, kOp, shards, args.in, affine),
                        .weight = args.weight,
                        .params = args.params,
                        .out = args.out});
  with_float_type(args.out.dtype(), [&]<class T>() {
    const Shape& shape = args.out.shape();
    const auto local = static_cast<unsigned>(shards.local());
    launch(stream,
           kOp,
           {dim3(blocks_for(shape[1], kFusedLanes), local), dim3(kFusedLanes, kFusedSlices)},
           fused_sums_kernel<T>,
           shard_table(shards),
           elements<T>(args.out),
           shape[2] * shape[3],
           static_cast<int>(shape[1]),
           sums.data<float>());
  });
}

void conv2d_fused_backward_weight(Stream& stream,
                                  const Shards& shards,
                                  const Conv2dBackwardWeightArgs& args,
                                  const Tensor& affine) {
  cuda::conv2d_backward_weight(
      stream,
      shards,
      {.in = normed(stream, "conv2d_fused_backward_weight", shards, args.in, affine),
       .grad_out = args.grad_out,
       .weight_shape = args.weight_shape,
       .params = args.params,
       .grad_weight = args.grad_weight});
}

}  // namespace lockstep::kernels::cuda
