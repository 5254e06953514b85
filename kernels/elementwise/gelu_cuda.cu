// One thread per pack of 16 bytes. Traffic per element: 2 values in the forward pass, 3 in the
// backward pass. Bound: DRAM for f32, instructions for 16-bit types.
#include "kernels/elementwise/gelu.h"
#include "kernels/elementwise/gelu_rule.h"
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class T, GeluForm kForm>
struct GeluForwardBody {
  static constexpr int kCount = 16 / sizeof(T);
  const T* in;
  T* out;

  template <int n>
  __device__ void run(int64_t first) const {
    Pack<T, n> pack = load_pack<n>(in + first);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float x = to_float(pack[i]);
      pack[i] = from_float<T>(x * gelu_factor<kForm, float, uint32_t>(x).value);
    }
    store_pack(out + first, pack);
  }
};

template <class T, GeluForm kForm>
struct GeluBackwardBody {
  static constexpr int kCount = 16 / sizeof(T);
  const T* in;
  const T* grad_out;
  T* grad_in;

  template <int n>
  __device__ void run(int64_t first) const {
    const Pack<T, n> input = load_pack<n>(in + first);
    Pack<T, n> grad = load_pack<n>(grad_out + first);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float slope = gelu_factor<kForm, float, uint32_t>(to_float(input[i])).slope;
      grad[i] = from_float<T>(to_float(grad[i]) * slope);
    }
    store_pack(grad_in + first, grad);
  }
};

// body.operator()<T, form>() with the device's type.
template <class Body>
void with_gelu(Dtype dtype, GeluForm form, Body&& body) {
  with_float_type(dtype, [&]<class T>() {
    with_gelu_form(form, [&]<GeluForm kForm>() { body.template operator()<T, kForm>(); });
  });
}

}  // namespace

void gelu_forward(Stream& stream, const Tensor& in, GeluForm form, Tensor& out) {
  with_gelu(in.dtype(), form, [&]<class T, GeluForm kForm>() {
    const GeluForwardBody<T, kForm> body{elements<T>(in), elements<T>(out)};
    launch_elementwise(stream, "gelu_forward", in.numel(), body, {body.in, body.out});
  });
}

void gelu_backward(
    Stream& stream, const Tensor& in, const Tensor& grad_out, GeluForm form, Tensor& grad_in) {
  with_gelu(in.dtype(), form, [&]<class T, GeluForm kForm>() {
    const GeluBackwardBody<T, kForm> body{
        elements<T>(in), elements<T>(grad_out), elements<T>(grad_in)};
    launch_elementwise(
        stream, "gelu_backward", in.numel(), body, {body.in, body.grad_out, body.grad_in});
  });
}

}  // namespace lockstep::kernels::cuda
