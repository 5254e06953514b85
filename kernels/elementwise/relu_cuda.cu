// One thread per pack of 16 bytes. Traffic per element: 2 values in the forward pass, 3 in the
// backward pass. Bound: DRAM.
#include "kernels/elementwise/relu.h"
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct ReluForward {
  static constexpr int kCount = 16 / sizeof(T);
  const T* in;
  T* out;

  template <int n>
  __device__ void run(int64_t first) const {
    Pack<T, n> pack = load_pack<n>(in + first);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      if (to_float(pack[i]) <= 0) pack[i] = from_float<T>(0);
    }
    store_pack(out + first, pack);
  }
};

template <class T>
struct ReluBackward {
  static constexpr int kCount = 16 / sizeof(T);
  const T* out;
  const T* grad_out;
  T* grad_in;

  template <int n>
  __device__ void run(int64_t first) const {
    const Pack<T, n> gate = load_pack<n>(out + first);
    Pack<T, n> grad = load_pack<n>(grad_out + first);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      if (to_float(gate[i]) <= 0) grad[i] = from_float<T>(0);
    }
    store_pack(grad_in + first, grad);
  }
};

}  // namespace

void relu_forward(Stream& stream, const Tensor& in, Tensor& out) {
  with_float_type(in.dtype(), [&]<class T>() {
    const ReluForward<T> body{elements<T>(in), elements<T>(out)};
    launch_elementwise(stream, "relu_forward", in.numel(), body, {body.in, body.out});
  });
}

void relu_backward(Stream& stream, const Tensor& out, const Tensor& grad_out, Tensor& grad_in) {
  with_float_type(out.dtype(), [&]<class T>() {
    const ReluBackward<T> body{elements<T>(out), elements<T>(grad_out), elements<T>(grad_in)};
    launch_elementwise(
        stream, "relu_backward", out.numel(), body, {body.out, body.grad_out, body.grad_in});
  });
}

}  // namespace lockstep::kernels::cuda
