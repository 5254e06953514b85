// One thread per pack of up to 16 bytes of the whole image's channels, whose size divides both
// parts. Kernels depend only on the size of the type. Traffic per element: 2 values. Bound: DRAM.
#include <numeric>

#include "kernels/elementwise/concat_channels.h"
#include "kernels/support/cuda/images.cuh"

namespace lockstep::kernels::cuda {
namespace {

// T: the unsigned integer of an element's size.
template <class T>
struct ConcatParts {
  int height, width, of_a, of_b;  // pixels; channels

  // The index of an element of an image with `channels` channels: a part, or the whole.
  __device__ int64_t place(int64_t image, int y, int x, int channels, int c) const {
    return ((image * height + y) * width + x) * channels + c;
  }
};

template <class T>
struct ConcatForward {
  ConcatParts<T> parts;
  const T *a, *b;
  T* out;

  template <int n>
  __device__ void run(int64_t image, int y, int x, int c) const {
    const int of_a = parts.of_a, of_b = parts.of_b;
    const T* from = c < of_a ? a + parts.place(image, y, x, of_a, c)
                             : b + parts.place(image, y, x, of_b, c - of_a);
    store_pack(out + parts.place(image, y, x, of_a + of_b, c), load_pack<n>(from));
  }
};

template <class T>
struct ConcatBackward {
  ConcatParts<T> parts;
  const T* grad_out;
  T *grad_a, *grad_b;

  template <int n>
  __device__ void run(int64_t image, int y, int x, int c) const {
    const int of_a = parts.of_a, of_b = parts.of_b;
    T* to = c < of_a ? grad_a + parts.place(image, y, x, of_a, c)
                     : grad_b + parts.place(image, y, x, of_b, c - of_a);
    store_pack(to, load_pack<n>(grad_out + parts.place(image, y, x, of_a + of_b, c)));
  }
};

// Calls body(parts, number of channels that packs must divide).
template <class Body>
void with_bits(const char* op, const Tensor& a, const Tensor& b, const Tensor& whole, Body&& body) {
  to_int(op, whole.shape().stride0());
  const auto extent = [](const Tensor& tensor, int axis) {
    return static_cast<int>(tensor.shape()[axis]);
  };
  const auto call = [&]<class T>() {
    body(ConcatParts<T>{extent(whole, 2), extent(whole, 3), extent(a, 1), extent(b, 1)},
         std::gcd(a.shape()[1], b.shape()[1]));
  };
  if (a.dtype() == Dtype::kF32) return call.template operator()<uint32_t>();
  call.template operator()<uint16_t>();
}

template <class T>
const T* bits(const Tensor& tensor) {
  return reinterpret_cast<const T*>(tensor.bytes());
}
template <class T>
T* bits(Tensor& tensor) {
  return reinterpret_cast<T*>(tensor.bytes());
}

}  // namespace

void concat_channels_forward(
    Stream& stream, const Shards&, const Tensor& a, const Tensor& b, Tensor& out) {
  constexpr const char* kOp = "concat_channels_forward";
  with_bits(kOp, a, b, out, [&]<class T>(const ConcatParts<T>& parts, int64_t channels) {
    const ConcatForward<T> body{parts, bits<T>(a), bits<T>(b), bits<T>(out)};
    with_channel_pack<T>(channels, {body.a, body.b, body.out}, [&]<int n>() {
      launch_images<n>(stream, kOp, out.shape(), body);
    });
  });
}

void concat_channels_backward(
    Stream& stream, const Shards&, const Tensor& grad_out, Tensor& grad_a, Tensor& grad_b) {
  constexpr const char* kOp = "concat_channels_backward";
  with_bits(
      kOp, grad_a, grad_b, grad_out, [&]<class T>(const ConcatParts<T>& parts, int64_t channels) {
        const ConcatBackward<T> body{parts, bits<T>(grad_out), bits<T>(grad_a), bits<T>(grad_b)};
        with_channel_pack<T>(channels, {body.grad_out, body.grad_a, body.grad_b}, [&]<int n>() {
          launch_images<n>(stream, kOp, grad_out.shape(), body);
        });
      });
}

}  // namespace lockstep::kernels::cuda
