// Forward: one thread per pack of 16 bytes, or per element where K is no multiple of a pack.
// Traffic per element: 2 values. Bound: DRAM. Backward: kernels/support/cuda/column_sum.cuh, one
// value.
#include "kernels/linear/add_bias.h"
#include "kernels/support/cuda/column_sum.cuh"
#include "kernels/support/cuda/elementwise.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct AddBiasBody {
  static constexpr int kCount = 16 / sizeof(T);
  int64_t channels;
  const float* bias;
  const T* in;
  T* out;

  template <int n>
  __device__ void run(int64_t first) const {
    const int64_t channel = first - divide(first, channels) * channels;
    const Pack<float, n> offset = load_pack<n>(bias + channel);
    Pack<T, n> pack = load_pack<n>(in + first);
#pragma unroll
    for (int i = 0; i < n; ++i) pack[i] = from_float<T>(to_float(pack[i]) + offset[i]);
    store_pack(out + first, pack);
  }
};

}  // namespace

void add_bias_forward(Stream& stream, const Tensor& in, const Tensor& bias, Tensor& out) {
  const int64_t channels = bias.numel();
  with_float_type(in.dtype(), [&]<class T>() {
    const AddBiasBody<T> body{channels, bias.data<float>(), elements<T>(in), elements<T>(out)};
    launch_elementwise(stream,
                       "add_bias_forward",
                       in.numel(),
                       body,
                       {body.bias, body.in, body.out},
                       channels % body.kCount == 0);
  });
}

void add_bias_backward(Stream& stream,
                       const Shards& shards,
                       const Tensor& grad_out,
                       Tensor& grad_bias) {
  const Shape& shape = grad_out.shape();
  const int64_t pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
  with_float_type(grad_out.dtype(), [&]<class T>() {
    sum_columns(stream,
                "add_bias_backward",
                shards,
                ImageRows<T>{elements<T>(grad_out), pixels, shape[1]},
                grad_bias.data<float>());
  });
}

}  // namespace lockstep::kernels::cuda
