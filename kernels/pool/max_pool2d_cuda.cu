// One thread per pack of 16 bytes of channels: of an output in the forward pass, and of an input in
// the backward pass, which gathers from the windows that hold it, so that no atomics are needed.
// Traffic: in, out (or their gradients) and a byte of winner per output, once each; repeated reads
// by overlapping windows come from the caches. Bound: DRAM, in the forward pass with f16 closely
// followed by comparisons.
#include "kernels/support/cuda/images.cuh"
#include "kernels/support/cuda/numeric.cuh"
#include "kernels/pool/max_pool2d.h"

namespace lockstep::kernels::cuda {
namespace {

// The windows along one axis.
struct PoolAxis {
  PoolAxis(
      const char* op, int64_t in_extent, int64_t out_extent, int kernel_size, int step, int border)
      : in(to_int(op, in_extent)),
        out(to_int(op, out_extent)),
        kernel(kernel_size),
        stride(step),
        pad(border),
        by_stride(step) {}

  // The input under tap 0 of output o; it may be in the padding.
  __device__ int first(int o) const { return o * stride - pad; }
  // Outputs whose windows hold input i: [first_output(i), end_output(i)).
  __device__ int first_output(int i) const {
    // Windows that begin at `too_early` or before it end before input i.
    const int too_early = i + pad - kernel;
    return too_early < 0
               ? 0
               : static_cast<int>(by_stride.quotient(static_cast<unsigned>(too_early))) + 1;
  }
  __device__ int end_output(int i) const {
    return min(static_cast<int>(by_stride.quotient(static_cast<unsigned>(i + pad))) + 1, out);
  }

  int in, out, kernel, stride, pad;
  Divider by_stride;
};

constexpr int kTapsAtOnce = 3;

template <class T>
struct MaxPoolForward {
  PoolAxis rows, columns;
  int64_t channels;
  const T* in;
  T* out;
  uint8_t* winner;

  template <int n>
  __device__ void run(int64_t image, int oy, int ox, int c) const {
    const int top = rows.first(oy);
    const int left = columns.first(ox);
    const int ky_begin = max(-top, 0);
    const int ky_end = min(rows.kernel, rows.in - top);
    const int kx_begin = max(-left, 0);
    const int kx_end = min(columns.kernel, columns.in - left);
    float best[n];
    int argmax[n];
#pragma unroll
    for (int i = 0; i < n; ++i) {
      best[i] = -INFINITY;
      argmax[i] = ky_begin * columns.kernel + kx_begin;
    }
    for (int ky = ky_begin; ky < ky_end; ++ky) {
      const int64_t row = (image * rows.in + top + ky) * columns.in + left;
      for (int kx = kx_begin; kx < kx_end; kx += kTapsAtOnce) {
#pragma unroll
        for (int tap = 0; tap < kTapsAtOnce; ++tap) {
          if (kx + tap >= kx_end) continue;
          const Pack<T, n> pack = load_pack<n>(in + (row + kx + tap) * channels + c);
          update_max(pack, ky * columns.kernel + kx + tap, best, argmax);
        }
      }
    }
    store<n>(((image * rows.out + oy) * columns.out + ox) * channels + c, best, argmax);
  }

  template <int n>
  __device__ static void update_max(const Pack<T, n>& pack,
                                    int tap,
                                    float (&best)[n],
                                    int (&argmax)[n]) {
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float value = to_float(pack[i]);
      const bool wins = value > best[i] || isnan(value);
      best[i] = wins ? value : best[i];
      argmax[i] = wins ? tap : argmax[i];
    }
  }

  template <int n>
  __device__ void store(int64_t at, const float* best, const int* argmax) const {
    Pack<T, n> values;
    Pack<uint8_t, n> taps;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      values[i] = from_float<T>(best[i]);
      taps[i] = static_cast<uint8_t>(argmax[i]);
    }
    store_pack(out + at, values);
    store_pack(winner + at, taps);
  }
};

template <class T>
struct MaxPoolBackward {
  PoolAxis rows, columns;
  int64_t channels;
  bool overlap;
  const T* grad_out;
  const uint8_t* winner;
  T* grad_in;

  template <int n>
  __device__ void run(int64_t image, int y, int x, int c) const {
    const int oy_end = rows.end_output(y);
    const int ox_begin = columns.first_output(x);
    const int ox_end = columns.end_output(x);
    float sum[n] = {};
    for (int oy = rows.first_output(y); oy < oy_end; ++oy) {
      const int tap = (y - rows.first(oy)) * columns.kernel + x + columns.pad;
      const int64_t row = (image * rows.out + oy) * columns.out;
      for (int ox = ox_begin; ox < ox_end; ++ox) {
        const int64_t at = (row + ox) * channels + c;
        const Pack<uint8_t, n> argmax = load_pack<n>(winner + at);
        const Pack<T, n> grad = load_pack<n>(grad_out + at);
#pragma unroll
        for (int i = 0; i < n; ++i) {
          const float value = to_float(grad[i]);
          const float next = overlap ? sum[i] + value : value;  // a lone -0 stays -0
          if (argmax[i] == tap - ox * columns.stride) sum[i] = next;
        }
      }
    }
    Pack<T, n> result;
#pragma unroll
    for (int i = 0; i < n; ++i) result[i] = from_float<T>(sum[i]);
    store_pack(grad_in + ((image * rows.in + y) * columns.in + x) * channels + c, result);
  }
};

PoolAxis rows_of(const char* op, const Shape& in, const Shape& out, const MaxPool2dParams& p) {
  return {op, in[2], out[2], p.kernel_h, p.stride_h, p.pad_h};
}
PoolAxis columns_of(const char* op, const Shape& in, const Shape& out, const MaxPool2dParams& p) {
  return {op, in[3], out[3], p.kernel_w, p.stride_w, p.pad_w};
}

}  // namespace

void max_pool2d_forward(Stream& stream,
                        const Shards&,
                        const Tensor& in,
                        const MaxPool2dParams& params,
                        Tensor& out,
                        Tensor& winner) {
  constexpr const char* kOp = "max_pool2d_forward";
  with_float_type(in.dtype(), [&]<class T>() {
    const MaxPoolForward<T> body{rows_of(kOp, in.shape(), out.shape(), params),
                                 columns_of(kOp, in.shape(), out.shape(), params),
                                 in.shape()[1],
                                 elements<T>(in),
                                 elements<T>(out),
                                 winner.data<uint8_t>()};
    with_channel_pack<T>(in.shape()[1], {body.in, body.out, body.winner}, [&]<int n>() {
      launch_images<n>(stream, kOp, out.shape(), body);
    });
  });
}

void max_pool2d_backward(Stream& stream,
                         const Shards&,
                         const Tensor& grad_out,
                         const Tensor& winner,
                         const MaxPool2dParams& params,
                         Tensor& grad_in) {
  constexpr const char* kOp = "max_pool2d_backward";
  with_float_type(grad_in.dtype(), [&]<class T>() {
    const MaxPoolBackward<T> body{
        rows_of(kOp, grad_in.shape(), grad_out.shape(), params),
        columns_of(kOp, grad_in.shape(), grad_out.shape(), params),
        grad_in.shape()[1],
        params.stride_h < params.kernel_h || params.stride_w < params.kernel_w,
        elements<T>(grad_out),
        winner.data<uint8_t>(),
        elements<T>(grad_in)};
    with_channel_pack<T>(grad_in.shape()[1],
                         {body.grad_out, body.winner, body.grad_in},
                         [&]<int n>() { launch_images<n>(stream, kOp, grad_in.shape(), body); });
  });
}

}  // namespace lockstep::kernels::cuda
