// One thread per 4 values if the row's width is a multiple of 4, else per value. Traffic: each
// value of both rows once. Bound: DRAM.
#include "kernels/elementwise/convert_rows.h"
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class Src, class Dst>
struct ConvertBody {
  static constexpr int kCount = 4;
  const Src* from;
  Dst* to;
  int64_t from_channels, to_channels;

  template <int n>
  __device__ void run(int64_t first) const {
    const int64_t row = first / to_channels;
    const int64_t channel = first - row * to_channels;
    Pack<Dst, n> pack;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const bool there = channel + i < from_channels;
      pack[i] = from_float<Dst>(there ? to_float(from[row * from_channels + channel + i]) : 0.0F);
    }
    store_pack(to + first, pack);
  }
};

}  // namespace

void convert_rows(Stream& stream,
                  const RowConversion& conversion,
                  const std::byte* from,
                  std::byte* to) {
  with_float_type(conversion.from_type, [&]<class Src>() {
    with_float_type(conversion.to_type, [&]<class Dst>() {
      const ConvertBody<Src, Dst> body{reinterpret_cast<const Src*>(from),
                                       reinterpret_cast<Dst*>(to),
                                       conversion.from_channels,
                                       conversion.to_channels};
      launch_elementwise(stream,
                         "convert_rows",
                         conversion.count * conversion.to_channels,
                         body,
                         {to},
                         conversion.to_channels % body.kCount == 0);
    });
  });
}

}  // namespace lockstep::kernels::cuda
