// copy: the driver's memcpy, which is as fast as a kernel can be and becomes a memcpy node in a
// recorded graph. Traffic per element: 2 values. Bound: DRAM.
// cast: one thread per 16 bytes of the narrower type. Traffic per element: a value of each type.
// Bound: DRAM.
#include <algorithm>

#include "core/cuda/stream.h"
#include "kernels/elementwise/copy.h"
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class Src, class Dst>
struct CastBody {
  static constexpr int kCount = 16 / std::min(sizeof(Src), sizeof(Dst));
  const Src* src;
  Dst* dst;

  template <int n>
  __device__ void run(int64_t first) const {
    const Pack<Src, n> from = load_pack<n>(src + first);
    Pack<Dst, n> to;
#pragma unroll
    for (int i = 0; i < n; ++i) to[i] = from_float<Dst>(to_float(from[i]));
    store_pack(dst + first, to);
  }
};

}  // namespace

void copy(Stream& stream, const Tensor& src, Tensor& dst) {
  lockstep::cuda::copy_bytes(stream.cuda(), dst.bytes(), src.bytes(), src.nbytes());
}

void cast(Stream& stream, const Tensor& src, Tensor& dst) {
  with_float_type(src.dtype(), [&]<class Src>() {
    with_float_type(dst.dtype(), [&]<class Dst>() {
      const CastBody<Src, Dst> body{elements<Src>(src), elements<Dst>(dst)};
      launch_elementwise(stream, "cast", src.numel(), body, {body.src, body.dst});
    });
  });
}

}  // namespace lockstep::kernels::cuda
