// One thread per pack of 16 bytes: one Philox block per four elements, or per element if an image's
// size is not a multiple of four. Traffic per element: 2 values. Bound: DRAM in f32; in f16 and
// bf16 arithmetic, about 30 instructions per element, is as slow.
#include "kernels/random/dropout.h"
#include "kernels/random/dropout_mask.h"
#include "kernels/random/random.cuh"
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct DropoutBody {
  static constexpr int kCount = 16 / sizeof(T);
  DropoutMask mask;
  int64_t features;  // elements per image
  const int64_t* images;
  const T* in;
  T* out;

  // The draws of the block that element i is in.
  __device__ PhiloxBlock draws(int64_t i) const {
    const int64_t image = divide(i, features);
    return mask.draws(images[image], (i - image * features) / 4);
  }

  template <int n>
  __device__ void run(int64_t first) const {
    if constexpr (n == 1) {
      const int place = static_cast<int>((first - divide(first, features) * features) % 4);
      const float factor = mask.factor(word_of(draws(first), place));
      out[first] = from_float<T>(to_float(in[first]) * factor);
    } else {
      Pack<T, n> pack = load_pack<n>(in + first);
#pragma unroll
      for (int begin = 0; begin < n; begin += 4) {
        const PhiloxBlock block = draws(first + begin);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float value = to_float(pack[begin + i]);
          pack[begin + i] = from_float<T>(value * mask.factor(block.words[i]));
        }
      }
      store_pack(out + first, pack);
    }
  }
};

void apply_mask(Stream& stream,
                const char* op,
                const Tensor& in,
                const Tensor& images,
                const DropoutParams& params,
                Tensor& out) {
  if (in.numel() == 0) return;
  const int64_t features = in.shape().stride0();
  with_float_type(in.dtype(), [&]<class T>() {
    const DropoutBody<T> body{
        DropoutMask(params), features, images.data<int64_t>(), elements<T>(in), elements<T>(out)};
    launch_elementwise(stream, op, in.numel(), body, {body.in, body.out}, features % 4 == 0);
  });
}

}  // namespace

void dropout_forward(Stream& stream,
                     const Tensor& in,
                     const Tensor& images,
                     const DropoutParams& params,
                     Tensor& out) {
  apply_mask(stream, "dropout_forward", in, images, params, out);
}

void dropout_backward(Stream& stream,
                      const Tensor& grad_out,
                      const Tensor& images,
                      const DropoutParams& params,
                      Tensor& grad_in) {
  apply_mask(stream, "dropout_backward", grad_out, images, params, grad_in);
}

}  // namespace lockstep::kernels::cuda
