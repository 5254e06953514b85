// global_avg_pool: one thread per pack of 16 bytes of an image's channels, in blocks of 64 threads,
// so that small batches reach all SMs. The forward pass iterates over the pixels in order, with the
// loads of eight in flight; in the backward pass a thread writes eight pixels. Traffic: the image
// once, its means once. Bound: DRAM; latency if there are few images and channels.
// adaptive_avg_pool2d: one thread per pack of 16 bytes of a pixel of the result. Traffic: the image
// once, since overlapping windows find it in the cache, and the means once. Bound: DRAM; latency if
// there are few results.
#include "core/round_up.h"
#include "kernels/pool/avg_pool2d.h"
#include "kernels/support/cuda/images.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kAverageThreads = 64;
constexpr int kAveragePixelsAtOnce = 8;
constexpr int64_t kAverageMaxPieces = 64;  // per image, backward; blocks loop over more

struct Extents {
  int64_t packs;  // in all images
  int64_t packs_of_image, channels, pixels;
};

// The element index of pixel 0 of pack `i`, which is counted over all images.
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

__device__ __forceinline__ int span_size(PoolSpan span) {
  return span.end - span.begin;
}

template <class T>
struct AdaptivePoolForward {
  int height, width, out_height, out_width;
  int64_t channels;
  const T* in;
  T* out;

  template <int n>
  __device__ void run(int64_t image, int oy, int ox, int c) const {
    const PoolSpan rows = pool_span(oy, height, out_height);
    const PoolSpan columns = pool_span(ox, width, out_width);
    float sum[n] = {};
    for (int y = rows.begin; y < rows.end; ++y) {
      const T* row = in + (image * height + y) * width * channels + c;
      for (int x = columns.begin; x < columns.end; ++x) {
        const Pack<T, n> pack = load_pack<n>(row + x * channels);
#pragma unroll
        for (int i = 0; i < n; ++i) sum[i] += to_float(pack[i]);
      }
    }
    const auto pixels = static_cast<float>(span_size(rows) * span_size(columns));
    Pack<T, n> mean;
#pragma unroll
    for (int i = 0; i < n; ++i) mean[i] = from_float<T>(sum[i] / pixels);
    store_pack(out + ((image * out_height + oy) * out_width + ox) * channels + c, mean);
  }
};

template <class T>
struct AdaptivePoolBackward {
  int height, width, out_height, out_width;
  int64_t channels;
  const T* grad_out;
  T* grad_in;

  template <int n>
  __device__ void run(int64_t image, int y, int x, int c) const {
    const PoolSpan rows = pool_span(y, out_height, height);
    const PoolSpan columns = pool_span(x, out_width, width);
    float sum[n] = {};
    for (int oy = rows.begin; oy < rows.end; ++oy) {
      const int window_height = span_size(pool_span(oy, height, out_height));
      const T* row = grad_out + (image * out_height + oy) * out_width * channels + c;
      for (int ox = columns.begin; ox < columns.end; ++ox) {
        const auto pixels =
            static_cast<float>(window_height * span_size(pool_span(ox, width, out_width)));
        const Pack<T, n> pack = load_pack<n>(row + ox * channels);
#pragma unroll
        for (int i = 0; i < n; ++i) sum[i] += to_float(pack[i]) / pixels;
      }
    }
    Pack<T, n> grad;
#pragma unroll
    for (int i = 0; i < n; ++i) grad[i] = from_float<T>(sum[i]);
    store_pack(grad_in + ((image * height + y) * width + x) * channels + c, grad);
  }
};

// Calls body.operator()<T>(height, width, out_height, out_width).
template <class Body>
void with_extents(const char* op, const Tensor& image, const Tensor& means, Body&& body) {
  to_int(op, image.shape().stride0());
  to_int(op, means.shape().stride0());
  const auto extent = [](const Tensor& tensor, int axis) {
    return static_cast<int>(tensor.shape()[axis]);
  };
  with_float_type(image.dtype(), [&]<class T>() {
    body.template operator()<T>(
        extent(image, 2), extent(image, 3), extent(means, 2), extent(means, 3));
  });
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
      const int64_t pieces = ceil_div<int64_t>(extents.pixels, kAveragePixelsAtOnce);
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

void adaptive_avg_pool2d_forward(Stream& stream, const Shards&, const Tensor& in, Tensor& out) {
  constexpr const char* kOp = "adaptive_avg_pool2d_forward";
  const int64_t channels = in.shape()[1];
  with_extents(kOp, in, out, [&]<class T>(int h, int w, int oh, int ow) {
    const AdaptivePoolForward<T> body{h, w, oh, ow, channels, elements<T>(in), elements<T>(out)};
    with_channel_pack<T>(channels, {body.in, body.out}, [&]<int n>() {
      launch_images<n>(stream, kOp, out.shape(), body);
    });
  });
}

void adaptive_avg_pool2d_backward(Stream& stream,
                                  const Shards&,
                                  const Tensor& grad_out,
                                  Tensor& grad_in) {
  constexpr const char* kOp = "adaptive_avg_pool2d_backward";
  const int64_t channels = grad_in.shape()[1];
  with_extents(kOp, grad_in, grad_out, [&]<class T>(int h, int w, int oh, int ow) {
    const AdaptivePoolBackward<T> body{
        h, w, oh, ow, channels, elements<T>(grad_out), elements<T>(grad_in)};
    with_channel_pack<T>(channels, {body.grad_out, body.grad_in}, [&]<int n>() {
      launch_images<n>(stream, kOp, grad_in.shape(), body);
    });
  });
}

}  // namespace lockstep::kernels::cuda
