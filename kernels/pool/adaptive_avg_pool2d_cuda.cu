// One thread a pack of 16 bytes of a result's pixel. Traffic: the image once, as its neighbors
// find it in the cache where windows overlap, and the means once. Bound: DRAM; latency where
// results are few.
#include "kernels/pool/adaptive_avg_pool2d.h"
#include "kernels/pool/adaptive_avg_pool2d_rule.h"
#include "kernels/support/cuda/images.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

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
