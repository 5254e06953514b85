// One thread per pack of 16 bytes. Traffic per element: one value. Bound: DRAM.
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/elementwise/fill.h"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct FillBody {
  static constexpr int kCount = 16 / sizeof(T);
  T value;
  T* out;

  template <int n>
  __device__ void run(int64_t first) const {
    Pack<T, n> pack;
#pragma unroll
    for (int i = 0; i < n; ++i) pack[i] = value;
    store_pack(out + first, pack);
  }
};

template <class T>
void fill_with(Stream& stream, T value, Tensor& out) {
  const FillBody<T> body{value, reinterpret_cast<T*>(out.bytes())};
  launch_elementwise(stream, "fill", out.numel(), body, {body.out});
}

}  // namespace

void fill(Stream& stream, double value, Tensor& out) {
  switch (out.dtype()) {
    case Dtype::kF32:
      return fill_with(stream, static_cast<float>(value), out);
    case Dtype::kF16:
      return fill_with(stream, Half(round_to_odd(value)).bits, out);
    case Dtype::kBF16:
      return fill_with(stream, BFloat16(round_to_odd(value)).bits, out);
    case Dtype::kU8:
      return fill_with(stream, static_cast<uint8_t>(value), out);
    case Dtype::kI32:
      return fill_with(stream, static_cast<int32_t>(value), out);
    case Dtype::kI64:
      return fill_with(stream, static_cast<int64_t>(value), out);
  }
}

}  // namespace lockstep::kernels::cuda
