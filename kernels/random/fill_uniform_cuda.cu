// One thread per pack of 16 bytes: a Philox block for every four elements. Traffic per element: one
// value. Bound: arithmetic, about 25 instructions per element.
#include "kernels/random/fill_uniform.h"
#include "kernels/random/random.cuh"
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct UniformBody {
  static constexpr int kCount = 16 / sizeof(T);
  FillUniformParams params;
  UniformRange range;
  T* out;

  __device__ PhiloxBlock block(int64_t i) const {
    return philox_block(params.seed, params.purpose, params.epoch, static_cast<uint64_t>(i / 4), 0);
  }

  template <int n>
  __device__ void run(int64_t first) const {
    if constexpr (n == 1) {
      const uint32_t draw = word_of(block(first), static_cast<int>(first % 4));
      out[first] = from_float<T>(range.at(draw));
    } else {
      Pack<T, n> pack;
#pragma unroll
      for (int begin = 0; begin < n; begin += 4) {
        const PhiloxBlock draws = block(first + begin);
#pragma unroll
        for (int i = 0; i < 4; ++i) pack[begin + i] = from_float<T>(range.at(draws.words[i]));
      }
      store_pack(out + first, pack);
    }
  }
};

}  // namespace

void fill_uniform(Stream& stream, const FillUniformParams& params, Tensor& out) {
  const UniformRange range = uniform_range(out.dtype(), params.low, params.high);
  with_float_type(out.dtype(), [&]<class T>() {
    const UniformBody<T> body{params, range, elements<T>(out)};
    launch_elementwise(stream, "fill_uniform", out.numel(), body, {body.out});
  });
}

}  // namespace lockstep::kernels::cuda
