// One thread a pack of 16 bytes of the result. Traffic an element: 1 byte read, a value written.
// Bound: DRAM; two divisions an element come close.
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/image/normalize.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct NormalizeBody {
  static constexpr int kCount = 16 / sizeof(T);
  const uint8_t* in;
  T* out;
  int channels;
  Normalization normalized;

  template <int n>
  __device__ void run(int64_t first) const {
    const Pack<uint8_t, n> bytes = load_pack<n>(in + first);
    Pack<T, n> values;
    int channel = static_cast<int>(first % channels);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      values[i] = from_float<T>(normalized(bytes[i], channel));
      channel = channel + 1 == channels ? 0 : channel + 1;
    }
    store_pack(out + first, values);
  }
};

}  // namespace

void normalize_image(Stream& stream,
                     const Shards& /*shards*/,
                     const Tensor& in,
                     const NormalizeImageParams& params,
                     Tensor& out) {
  const int64_t channels = in.shape()[1];
  const Normalization normalized = normalization("normalize_image", params, channels);
  with_float_type(out.dtype(), [&]<class T>() {
    const NormalizeBody<T> body{
        in.data<uint8_t>(), elements<T>(out), static_cast<int>(channels), normalized};
    launch_elementwise(stream, "normalize_image", in.numel(), body, {body.in, body.out});
  });
}

}  // namespace lockstep::kernels::cuda
