// One thread per pack of 16 bytes. Traffic per element: 8 bytes. Bound: DRAM.
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/elementwise/scale.h"

namespace lockstep::kernels::cuda {
namespace {

struct ScaleBody {
  static constexpr int kCount = 4;
  float factor;
  float* values;

  template <int n>
  __device__ void run(int64_t first) const {
    Pack<float, n> pack = load_pack<n>(values + first);
#pragma unroll
    for (int i = 0; i < n; ++i) pack[i] *= factor;
    store_pack(values + first, pack);
  }
};

}  // namespace

void scale(Stream& stream, float factor, Tensor& values) {
  const ScaleBody body{factor, values.data<float>()};
  launch_elementwise(stream, "scale", values.numel(), body, {body.values});
}

}  // namespace lockstep::kernels::cuda
