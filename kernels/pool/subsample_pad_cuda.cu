// One thread per pack of 16 bytes of the result: channels of one pixel, which are copied or 0.
// Traffic: each value of the narrow tensor is read and written once; the gradient also writes the
// zeros in between. Bound: DRAM.
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/pool/subsample_pad.h"

namespace lockstep::kernels::cuda {
namespace {

// Extents of in and out, or of their gradients.
struct SubsampleGeometry {
  int64_t channels, height, width;
  int64_t out_channels, out_height, out_width;
  int stride;

  __host__ __device__ int64_t pad() const { return (out_channels - channels) / 2; }
  // True if packs of `count` channels do not cross a pixel's end or the edge of its channel
  // padding.
  bool packs(int count) const { return channels % count == 0 && pad() % count == 0; }
};

SubsampleGeometry subsample_geometry(const Shape& wide, const Shape& narrow, int stride) {
  return {wide[1], wide[2], wide[3], narrow[1], narrow[2], narrow[3], stride};
}

template <class T>
struct SubsampleForward {
  static constexpr int kCount = 16 / sizeof(T);
  SubsampleGeometry g;
  const T* in;
  T* out;

  template <int n>
  __device__ void run(int64_t first) const {
    const int64_t pixel = first / g.out_channels;
    const int64_t row = pixel / g.out_width;
    const int64_t in_row = row / g.out_height * g.height + row % g.out_height * g.stride;
    const int64_t in_pixel = in_row * g.width + pixel % g.out_width * g.stride;
    const int64_t channel = first % g.out_channels - g.pad();
    Pack<T, n> values{};
    if (channel >= 0 && channel < g.channels)
      values = load_pack<n>(in + in_pixel * g.channels + channel);
    store_pack(out + first, values);
  }
};

template <class T>
struct SubsampleBackward {
  static constexpr int kCount = 16 / sizeof(T);
  SubsampleGeometry g;
  const T* grad_out;
  T* grad_in;

  template <int n>
  __device__ void run(int64_t first) const {
    const int64_t pixel = first / g.channels;
    const int64_t row = pixel / g.width;
    const int64_t y = row % g.height;
    const int64_t x = pixel % g.width;
    Pack<T, n> values{};
    if (y % g.stride == 0 && x % g.stride == 0) {
      const int64_t out_row = row / g.height * g.out_height + y / g.stride;
      const int64_t out_pixel = out_row * g.out_width + x / g.stride;
      values = load_pack<n>(grad_out + out_pixel * g.out_channels + g.pad() + first % g.channels);
    }
    store_pack(grad_in + first, values);
  }
};

}  // namespace

void subsample_pad_forward(
    Stream& stream, const Shards& /*shards*/, const Tensor& in, int stride, Tensor& out) {
  const SubsampleGeometry g = subsample_geometry(in.shape(), out.shape(), stride);
  with_float_type(in.dtype(), [&]<class T>() {
    const SubsampleForward<T> body{g, elements<T>(in), elements<T>(out)};
    launch_elementwise(stream,
                       "subsample_pad_forward",
                       out.numel(),
                       body,
                       {body.in, body.out},
                       g.packs(body.kCount));
  });
}

void subsample_pad_backward(
    Stream& stream, const Shards& /*shards*/, const Tensor& grad_out, int stride, Tensor& grad_in) {
  const SubsampleGeometry g = subsample_geometry(grad_in.shape(), grad_out.shape(), stride);
  with_float_type(grad_in.dtype(), [&]<class T>() {
    const SubsampleBackward<T> body{g, elements<T>(grad_out), elements<T>(grad_in)};
    launch_elementwise(stream,
                       "subsample_pad_backward",
                       grad_in.numel(),
                       body,
                       {body.grad_out, body.grad_in},
                       g.packs(body.kCount));
  });
}

}  // namespace lockstep::kernels::cuda
