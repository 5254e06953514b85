// Plain convolution: the baseline for other implementations, which runs where no library takes a
// shape. Taps outside the image are left out, so that they cannot cause NaN. Forward and gradient
// of the input: one thread per output value. Gradient of the weights: a warp covers 32 weights, and
// each of a block's 8 warps takes every 8th row of output pixels. Traffic: two values per
// multiplication, from caches; each tensor about once from DRAM. Bound: latency of loads.
#include <limits>

#include <fmt/core.h>

#include "kernels/conv/conv2d.h"
#include "kernels/support/cuda/column_sum.cuh"

namespace lockstep::kernels::cuda {
namespace {

using lockstep::cuda::blocks_for;
using lockstep::cuda::launch;
using lockstep::cuda::LaunchShape;

constexpr int kConvThreads = 256;
constexpr int kConvBlocksPerSm = 4;  // at least: 32 warps
constexpr int kWeightLanes = 32;     // threadIdx.x: weights
constexpr int kWeightSlices = 8;     // threadIdx.y: rows of output pixels

// Extents as int, which suffices to index a row of pixels; offsets into whole tensors have 64 bits.
struct ConvGeometry {
  int channels, height, width;
  int out_channels, taps_h, taps_w;
  int out_height, out_width;
  int group_channels, group_outputs;  // channels in and out of one group
  Conv2dParams params;

  // The input row or column under tap `tap` of output row or column `out`; it may be outside of the
  // image.
  __device__ int y(int out, int tap) const { return out * params.stride_h - params.pad_h + tap; }
  __device__ int x(int out, int tap) const { return out * params.stride_w - params.pad_w + tap; }
};

int narrow(int64_t extent) {
  if (extent > std::numeric_limits<int>::max()) {
    throw ShapeError(fmt::format("[conv2d] extent: got {}, expected less than 2^31", extent));
  }
  return static_cast<int>(extent);
}

ConvGeometry conv_geometry(const Shape& in, const Shape& weight, const Conv2dParams& params) {
  const Shape out = conv2d_output_shape(in, weight, params);
  for (const Shape& shape : {in, out}) {  // rows of pixels, and values in a row
    narrow(shape[0] * shape[2]);
    narrow(shape[1] * shape[3]);
  }
  return {narrow(in[1]),
          narrow(in[2]),
          narrow(in[3]),
          narrow(weight[0]),
          narrow(weight[2]),
          narrow(weight[3]),
          narrow(out[2]),
          narrow(out[3]),
          narrow(weight[1]),
          narrow(weight[0] / params.groups),
          params};
}

// One block per piece of a row of pixels.
LaunchShape shape_for(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const int64_t row_values = shape[1] * shape[3];
  return {dim3(static_cast<unsigned>(shape[0] * shape[2]), blocks_for(row_values, kConvThreads)),
          kConvThreads};
}

// The dot product of `count` values, loaded n at a time.
template <int n, class T>
__device__ __forceinline__ float dot(const T* a, const T* b, int count) {
  float sum = 0;
  for (int i = 0; i < count; i += n) {
    const Pack<T, n> left = load_pack<n>(a + i);
    const Pack<T, n> right = load_pack<n>(b + i);
#pragma unroll
    for (int j = 0; j < n; ++j) sum = __fmaf_rn(to_float(left[j]), to_float(right[j]), sum);
  }
  return sum;
}

template <class T, int n>
__global__ void __launch_bounds__(kConvThreads, kConvBlocksPerSm)
    conv_forward_kernel(const __grid_constant__ ConvGeometry g,
                        const T* in,
                        const T* weight,
                        const float* bias,
                        T* out) {
  const int row = static_cast<int>(blockIdx.x);
  const int place = static_cast<int>(blockIdx.y * kConvThreads + threadIdx.x);
  if (place >= g.out_width * g.out_channels) return;
  const int k = place % g.out_channels;
  const int ox = place / g.out_channels;
  const int oy = row % g.out_height;
  const int64_t image = row / g.out_height;
  const int first = k / g.group_outputs * g.group_channels;
  float sum = 0;
  for (int r = 0; r < g.taps_h; ++r) {
    const int y = g.y(oy, r);
    if (y < 0 || y >= g.height) continue;
    for (int s = 0; s < g.taps_w; ++s) {
      const int x = g.x(ox, s);
      if (x < 0 || x >= g.width) continue;
      sum += dot<n>(in + ((image * g.height + y) * g.width + x) * g.channels + first,
                    weight + ((int64_t{k} * g.taps_h + r) * g.taps_w + s) * g.group_channels,
                    g.group_channels);
    }
  }
  out[(int64_t{row} * g.out_width + ox) * g.out_channels + k] =
      from_float<T>(bias == nullptr ? sum : sum + bias[k]);
}

// The output row or column whose tap `tap` lies on input row or column `in`; -1 if there is none.
__device__ __forceinline__ int output_at(int in, int tap, int stride, int pad, int outputs) {
  const int shifted = in + pad - tap;
  if (shifted < 0 || shifted % stride != 0 || shifted / stride >= outputs) return -1;
  return shifted / stride;
}

template <class T>
__global__ void __launch_bounds__(kConvThreads) conv_backward_data_kernel(
    const __grid_constant__ ConvGeometry g, const T* grad_out, const T* weight, T* grad_in) {
  const int row = static_cast<int>(blockIdx.x);
  const int place = static_cast<int>(blockIdx.y * kConvThreads + threadIdx.x);
  if (place >= g.width * g.channels) return;
  const int c = place % g.channels;
  const int x = place / g.channels;
  const int y = row % g.height;
  const int64_t image = row / g.height;
  const int64_t weight_step = int64_t{g.taps_h} * g.taps_w * g.group_channels;
  const int first = c / g.group_channels * g.group_outputs;
  float sum = 0;
  for (int r = 0; r < g.taps_h; ++r) {
    const int oy = output_at(y, r, g.params.stride_h, g.params.pad_h, g.out_height);
    if (oy < 0) continue;
    for (int s = 0; s < g.taps_w; ++s) {
      const int ox = output_at(x, s, g.params.stride_w, g.params.pad_w, g.out_width);
      if (ox < 0) continue;
      const T* gradient =
          grad_out + ((image * g.out_height + oy) * g.out_width + ox) * g.out_channels + first;
      const T* tap = weight + first * weight_step + (r * g.taps_w + s) * g.group_channels +
                     c % g.group_channels;
      float tap_sum = 0;
      for (int k = 0; k < g.group_outputs; ++k)
        tap_sum = __fmaf_rn(to_float(gradient[k]), to_float(tap[k * weight_step]), tap_sum);
      sum += tap_sum;
    }
  }
  grad_in[(int64_t{row} * g.width + x) * g.channels + c] = from_float<T>(sum);
}

// One shard per row of the grid. Sums the pixels of a row, then every 8th row, then the 8 sums.
template <class T>
__global__ void __launch_bounds__(kWeightLanes* kWeightSlices)
    conv_backward_weight_kernel(const __grid_constant__ ShardTable shards,
                                const __grid_constant__ ConvGeometry g,
                                const T* in,
                                const T* grad_out,
                                float* grad_weight,
                                int weights) {
  const int index = static_cast<int>(blockIdx.x * kWeightLanes + threadIdx.x);
  const int s = index / g.group_channels % g.taps_w;
  const int r = index / g.group_channels / g.taps_w % g.taps_h;
  const int k = index / g.group_channels / g.taps_w / g.taps_h;
  const int c = k / g.group_outputs * g.group_channels + index % g.group_channels;
  const auto row_sum = [&](int row) {
    const int y = g.y(row % g.out_height, r);
    float sum = 0;
    if (y < 0 || y >= g.height) return sum;
    const int64_t in_row = int64_t{row / g.out_height} * g.height + y;
    const T* pixels = in + in_row * g.width * g.channels + c;
    const T* gradients = grad_out + int64_t{row} * g.out_width * g.out_channels + k;
    for (int ox = 0; ox < g.out_width; ++ox) {
      const int x = g.x(ox, s);
      if (x < 0 || x >= g.width) continue;
      sum = __fmaf_rn(
          to_float(gradients[ox * g.out_channels]), to_float(pixels[x * g.channels]), sum);
    }
    return sum;
  };
  __shared__ float slices[kWeightSlices][kWeightLanes];
  const int begin = static_cast<int>(shards.begin[blockIdx.y] * g.out_height);
  const int end = static_cast<int>(shards.begin[blockIdx.y + 1] * g.out_height);
  float sum = 0;
  if (index < weights) {
    for (int row = begin + static_cast<int>(threadIdx.y); row < end; row += kWeightSlices)
      sum += row_sum(row);
  }
  slices[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || index >= weights) return;
#pragma unroll
  for (int i = 1; i < kWeightSlices; ++i) sum += slices[i][threadIdx.x];
  grad_weight[int64_t{blockIdx.y} * weights + index] = sum;
}

}  // namespace

void conv2d_forward(Stream& stream, const Shards& /*shards*/, const Conv2dForwardArgs& args) {
  const Tensor &in = args.in, &weight = args.weight;
  const ConvGeometry geometry = conv_geometry(in.shape(), weight.shape(), args.params);
  with_float_type(in.dtype(), [&]<class T>() {
    constexpr int kCount = 16 / sizeof(T);
    const auto run = [&](auto* kernel) {
      launch(stream,
             "conv2d_forward",
             shape_for(args.out),
             kernel,
             geometry,
             elements<T>(in),
             elements<T>(weight),
             elements<float>(args.bias),
             elements<T>(args.out));
    };
    const bool packed =
        aligned({in.bytes(), weight.bytes()}) && geometry.group_channels % kCount == 0;
    packed ? run(conv_forward_kernel<T, kCount>) : run(conv_forward_kernel<T, 1>);
  });
}

void conv2d_backward_data(Stream& stream,
                          const Shards& /*shards*/,
                          const Tensor& grad_out,
                          const Tensor& weight,
                          const Conv2dParams& params,
                          Tensor& grad_in) {
  with_float_type(grad_in.dtype(), [&]<class T>() {
    launch(stream,
           "conv2d_backward_data",
           shape_for(grad_in),
           conv_backward_data_kernel<T>,
           conv_geometry(grad_in.shape(), weight.shape(), params),
           elements<T>(grad_out),
           elements<T>(weight),
           elements<T>(grad_in));
  });
}

void conv2d_backward_weight(Stream& stream,
                            const Shards& shards,
                            const Conv2dBackwardWeightArgs& args) {
  const ConvGeometry geometry = conv_geometry(args.in.shape(), args.weight_shape, args.params);
  const int weights = narrow(args.weight_shape.numel());
  Tensor grad_bias = args.bias_gradient();
  with_float_type(args.in.dtype(), [&]<class T>() {
    launch(stream,
           "conv2d_backward_weight",
           {dim3(blocks_for(weights, kWeightLanes), static_cast<unsigned>(shards.local())),
            dim3(kWeightLanes, kWeightSlices)},
           conv_backward_weight_kernel<T>,
           shard_table(shards),
           geometry,
           elements<T>(args.in),
           elements<T>(args.grad_out),
           elements<float>(args.grad_weight),
           weights);
    if (!grad_bias.defined()) return;
    const int64_t pixels = int64_t{geometry.out_height} * geometry.out_width;
    sum_columns(stream,
                "conv2d_backward_weight",
                shards,
                ImageRows<T>{elements<T>(args.grad_out), pixels, geometry.out_channels},
                elements<float>(grad_bias));
  });
}

}  // namespace lockstep::kernels::cuda
