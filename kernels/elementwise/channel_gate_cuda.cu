// Forward: one thread per pack of 16 bytes of a pixel. Backward: one thread per pack of an image's
// channels iterates over the pixels in order, with the loads of four pixels in flight; blocks have
// 64 threads, so that small batches reach all SMs. Traffic: the image once, or three times in the
// backward pass, and a gate per pixel from the cache. Bound: DRAM; latency if there are few images
// and channels.
#include "kernels/elementwise/channel_gate.h"
#include "kernels/elementwise/channel_gate_rule.h"
#include "kernels/support/cuda/images.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kGateThreads = 64;
constexpr int kGatePixelsAtOnce = 4;

template <class T, GateForm kForm>
struct GateForward {
  int height, width;
  int64_t channels;
  const T *in, *gate;
  T* out;

  template <int n>
  __device__ void run(int64_t image, int y, int x, int c) const {
    const int64_t at = ((image * height + y) * width + x) * channels + c;
    const Pack<T, n> gates = load_pack<n>(gate + image * channels + c);
    Pack<T, n> pack = load_pack<n>(in + at);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      pack[i] = from_float<T>(to_float(pack[i]) * gate_value<kForm>(to_float(gates[i])));
    }
    store_pack(out + at, pack);
  }
};

template <class T>
struct GateImages {
  int64_t packs;  // in all images
  int64_t packs_of_image, channels, pixels;
  const T *grad_out, *in, *gate;
  T *grad_in, *grad_gate;
};

// Processes kPixels pixels, the first at element `at`.
template <int kPixels, class T, int n>
__device__ __forceinline__ void gate_pixels(const GateImages<T>& images,
                                            int64_t at,
                                            const float (&gates)[n],
                                            float (&sum)[n]) {
  Pack<T, n> gradients[kPixels], values[kPixels];
#pragma unroll
  for (int p = 0; p < kPixels; ++p) {
    gradients[p] = load_pack<n>(images.grad_out + at + p * images.channels);
    values[p] = load_pack<n>(images.in + at + p * images.channels);
  }
#pragma unroll
  for (int p = 0; p < kPixels; ++p) {
#pragma unroll
    for (int k = 0; k < n; ++k) {
      const float gradient = to_float(gradients[p][k]);
      sum[k] += gradient * to_float(values[p][k]);
      gradients[p][k] = from_float<T>(gradient * gates[k]);
    }
    store_pack_whole(images.grad_in + at + p * images.channels, gradients[p]);
  }
}

template <GateForm kForm, class T, int n>
__global__ void __launch_bounds__(kGateThreads) gate_backward_kernel(GateImages<T> images) {
  const int64_t i = int64_t{blockIdx.x} * kGateThreads + threadIdx.x;
  if (i >= images.packs) return;
  const int64_t image = i / images.packs_of_image;
  const int64_t first =
      image * images.pixels * images.channels + (i - image * images.packs_of_image) * n;
  const Pack<T, n> logits = load_pack<n>(images.gate + i * n);
  float gates[n], sum[n] = {};
#pragma unroll
  for (int k = 0; k < n; ++k) gates[k] = gate_value<kForm>(to_float(logits[k]));
  int64_t p = 0;
  for (; p + kGatePixelsAtOnce <= images.pixels; p += kGatePixelsAtOnce) {
    gate_pixels<kGatePixelsAtOnce>(images, first + p * images.channels, gates, sum);
  }
  for (; p < images.pixels; ++p) {
    gate_pixels<1>(images, first + p * images.channels, gates, sum);
  }
  Pack<T, n> grad;
#pragma unroll
  for (int k = 0; k < n; ++k) {
    grad[k] = from_float<T>(gate_gradient<kForm>(to_float(logits[k]), sum[k]));
  }
  store_pack(images.grad_gate + i * n, grad);
}

// body.operator()<T, form>() with the device's type.
template <class Body>
void with_gate(Dtype dtype, GateForm form, Body&& body) {
  with_float_type(dtype, [&]<class T>() {
    with_gate_form(form, [&]<GateForm kForm>() { body.template operator()<T, kForm>(); });
  });
}

}  // namespace

void channel_gate_forward(Stream& stream,
                          const Shards&,
                          const Tensor& in,
                          const Tensor& gate,
                          GateForm form,
                          Tensor& out) {
  constexpr const char* kOp = "channel_gate_forward";
  const Shape& shape = in.shape();
  to_int(kOp, shape.stride0());
  with_gate(in.dtype(), form, [&]<class T, GateForm kForm>() {
    const GateForward<T, kForm> body{static_cast<int>(shape[2]),
                                     static_cast<int>(shape[3]),
                                     shape[1],
                                     elements<T>(in),
                                     elements<T>(gate),
                                     elements<T>(out)};
    with_channel_pack<T>(shape[1], {body.in, body.gate, body.out}, [&]<int n>() {
      launch_images<n>(stream, kOp, shape, body);
    });
  });
}

void channel_gate_backward(Stream& stream, const Shards&, const ChannelGateBackwardArgs& args) {
  const Shape& shape = args.in.shape();
  if (args.gate.numel() == 0) return;
  with_gate(args.in.dtype(), args.form, [&]<class T, GateForm kForm>() {
    GateImages<T> images{.packs = 0,
                         .packs_of_image = 0,
                         .channels = shape[1],
                         .pixels = shape[2] * shape[3],
                         .grad_out = elements<T>(args.grad_out),
                         .in = elements<T>(args.in),
                         .gate = elements<T>(args.gate),
                         .grad_in = elements<T>(args.grad_in),
                         .grad_gate = elements<T>(args.grad_gate)};
    with_channel_pack<T>(
        shape[1],
        {images.grad_out, images.in, images.gate, images.grad_in, images.grad_gate},
        [&]<int n>() {
          images.packs_of_image = shape[1] / n;
          images.packs = shape[0] * images.packs_of_image;
          lockstep::cuda::launch(
              stream,
              "channel_gate_backward",
              {lockstep::cuda::blocks_for(images.packs, kGateThreads), kGateThreads},
              gate_backward_kernel<kForm, T, n>,
              images);
        });
  });
}

}  // namespace lockstep::kernels::cuda
