// One thread per pack of 16 bytes. Traffic per element: 3 values. Bound: DRAM.
#include "kernels/elementwise/add.h"
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct AddBody {
  static constexpr int kCount = 16 / sizeof(T);
  const T* src;
  T* dst;

  template <int n>
  __device__ void run(int64_t first) const {
    const Pack<T, n> from = load_pack<n>(src + first);
    Pack<T, n> sum = load_pack<n>(dst + first);
#pragma unroll
    for (int i = 0; i < n; ++i) sum[i] = from_float<T>(to_float(sum[i]) + to_float(from[i]));
    store_pack(dst + first, sum);
  }
};

}  // namespace

void add(Stream& stream, const Tensor& src, Tensor& dst) {
  with_float_type(src.dtype(), [&]<class T>() {
    const AddBody<T> body{elements<T>(src), elements<T>(dst)};
    launch_elementwise(stream, "add", src.numel(), body, {body.src, body.dst});
  });
}

}  // namespace lockstep::kernels::cuda
