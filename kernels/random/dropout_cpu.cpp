#include "core/round_up.h"
#include "kernels/random/dropout.h"
#include "kernels/random/dropout_mask.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// The factors of a line whose first element is in `block`.
[[gnu::always_inline]] inline Line factors_of(const DropoutMask& mask,
                                              int64_t image,
                                              int64_t block) {
  float factors[kLineLanes];
  for (int64_t b = 0; b < kLineLanes / 4; ++b) {
    const PhiloxBlock draws = mask.draws(image, block + b);
    for (int64_t i = 0; i < 4; ++i) factors[4 * b + i] = mask.factor(draws.words[i]);
  }
  return Line::load(factors);
}

void apply_mask(Stream& stream,
                const Tensor& in,
                const Tensor& images,
                const DropoutParams& params,
                Tensor& out) {
  if (in.numel() == 0) return;
  const DropoutMask mask(params);
  const int64_t features = in.shape().stride0();
  const int64_t lines = ceil_div(features, kLineLanes);  // per image
  const int64_t all_lines = images.numel() * lines;
  const int64_t* image = images.data<int64_t>();
  const int64_t parts = in.numel() < kElementsPerFork ? 1 : stream.threads();
  dispatch_float(in.dtype(), [&]<class T>() {
    const T* from = in.data<T>();
    T* to = out.data<T>();
    stream.fork(parts, [=](int64_t part, int) {
      for (int64_t l = all_lines * part / parts; l < all_lines * (part + 1) / parts; ++l) {
        const int64_t offset = l % lines * kLineLanes;
        const int64_t at = l / lines * features + offset;
        const Line factors = factors_of(mask, image[l / lines], offset / 4);
        map_lines(
            std::min(kLineLanes, features - offset),
            to + at,
            [&](const Line& values) { return values * factors; },
            from + at);
      }
    });
  });
}

}  // namespace

void dropout_forward(Stream& stream,
                     const Tensor& in,
                     const Tensor& images,
                     const DropoutParams& params,
                     Tensor& out) {
  apply_mask(stream, in, images, params, out);
}

void dropout_backward(Stream& stream,
                      const Tensor& grad_out,
                      const Tensor& images,
                      const DropoutParams& params,
                      Tensor& grad_in) {
  apply_mask(stream, grad_out, images, params, grad_in);
}

}  // namespace lockstep::kernels::LS_CPU
