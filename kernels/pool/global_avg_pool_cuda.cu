// One thread a pack of 16 bytes of an image's channels, blocks of 64 so that small batches reach
// all SMs. Forward walks over the pixels in their order, with the loads of eight under way;
// backward writes eight pixels a thread. Traffic: the image once, its means once. Bound: DRAM,
// latency where images and channels are few.
#include "kernels/support/cuda/images.cuh"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/pool/global_avg_pool.h"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kAverageThreads = 64;
constexpr int kAveragePixelsAtOnce = 8;
constexpr int64_t kAverageMaxPieces = 64;  // of an image, backward; more go round

struct Extents {
  int64_t packs;  // of all images
  int64_t packs_of_image, channels, pixels;
};

// Place of pixel 0 of the pack `i`, counted over images.
template <int n>
__device__ int64_t first_element(const Extents& extents, int64_t i) {
  const int64_t image = i / extents.packs_of_image;
  return image * extents.pixels * extents.channels + (i - image * extents.packs_of_image) * n;
}

template <int kPixels, class T, int n>
__device__ __forceinline__ void add_pixels(const T* first, int64_t stride, float (&sum)[n]) {
  Pack<T, n> packs[kPixels];
#pragma unroll
  for (int p = 0; p < kPixels; ++p) packs[p] = load_pack<n>(first + p * stride);
#pragma unroll
  for (int p = 0; p < kPixels; ++p) {
#pragma unroll
    for (int k = 0; k < n; ++k) sum[k] += to_float(packs[p][k]);
  }
}

template <class T, int n>
__global__ void __launch_bounds__(kAverageThreads)
    average_forward_kernel(Extents extents, const T* in, T* out) {
  const int64_t i = int64_t{blockIdx.x} * kAverageThreads + threadIdx.x;
  if (i >= extents.packs) return;
  const T* first = in + first_element<n>(extents, i);
  float sum[n] = {};
  int64_t p = 0;
  for (; p + kAveragePixelsAtOnce <= extents.pixels; p += kAveragePixelsAtOnce) {
    add_pixels<kAveragePixelsAtOnce>(first + p * extents.channels, extents.channels, sum);
  }
  for (; p < extents.pixels; ++p) add_pixels<1>(first + p * extents.channels, 0, sum);
  Pack<T, n> mean;
#pragma unroll
  for (int k = 0; k < n; ++k) mean[k] = from_float<T>(sum[k] / static_cast<float>(extents.pixels));
  store_pack(out + i * n, mean);
}

template <class T, int n>
__global__ void __launch_bounds__(kAverageThreads)
    average_backward_kernel(Extents extents, const T* grad_out, T* grad_in) {
  const int64_t i = int64_t{blockIdx.x} * kAverageThreads + threadIdx.x;
  if (i >= extents.packs) return;
  Pack<T, n> grad = load_pack<n>(grad_out + i * n);
#pragma unroll
  for (int k = 0; k < n; ++k) {
    grad[k] = from_float<T>(to_float(grad[k]) / static_cast<float>(extents.pixels));
  }
  T* first = grad_in + first_element<n>(extents, i);
  for (int64_t start = int64_t{blockIdx.y} * kAveragePixelsAtOnce; start < extents.pixels;
       start += int64_t{gridDim.y} * kAveragePixelsAtOnce) {
    const int64_t end = min(start + kAveragePixelsAtOnce, extents.pixels);
    for (int64_t p = start; p < end; ++p) store_pack_whole(first + p * extents.channels, grad);
  }
}

template <int n>
Extents extents_of(const Shape& image) {
  const int64_t packs_of_image = image[1] / n;
  return {image[0] * packs_of_image, packs_of_image, image[1], image[2] * image[3]};
}

}  // namespace

void global_avg_pool_forward(Stream& stream, const Shards&, const Tensor& in, Tensor& out) {
  with_float_type(in.dtype(), [&]<class T>() {
    const T* from = elements<T>(in);
    T* to = elements<T>(out);
    with_channel_pack<T>(in.shape()[1], {from, to}, [&]<int n>() {
      const Extents extents = extents_of<n>(in.shape());
      lockstep::cuda::launch(
          stream,
          "global_avg_pool_forward",
          {lockstep::cuda::blocks_for(extents.packs, kAverageThreads), kAverageThreads},
          average_forward_kernel<T, n>,
          extents,
          from,
          to);
    });
  });
}

void global_avg_pool_backward(Stream& stream,
                              const Shards&,
                              const Tensor& grad_out,
                              Tensor& grad_in) {
  with_float_type(grad_in.dtype(), [&]<class T>() {
    const T* from = elements<T>(grad_out);
    T* to = elements<T>(grad_in);
    with_channel_pack<T>(grad_in.shape()[1], {from, to}, [&]<int n>() {
      const Extents extents = extents_of<n>(grad_in.shape());
      const int64_t pieces = (extents.pixels + kAveragePixelsAtOnce - 1) / kAveragePixelsAtOnce;
      const dim3 grid(lockstep::cuda::blocks_for(extents.packs, kAverageThreads),
                      static_cast<unsigned>(std::min(pieces, kAverageMaxPieces)));
      lockstep::cuda::launch(stream,
                             "global_avg_pool_backward",
                             {grid, kAverageThreads},
                             average_backward_kernel<T, n>,
                             extents,
                             from,
                             to);
    });
  });
}

}  // namespace lockstep::kernels::cuda
