#include "kernels/random/depth_draw.h"
#include "kernels/random/stochastic_depth.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

[[gnu::always_inline]] inline Line everywhere(float value) {
  return Line::make([=](int64_t) { return Line::Vector{} + value; });
}

// Calls body(first element, elements, factor of the branch) for each image, in parallel.
template <class Body>
void for_branches(Stream& stream,
                  const Tensor& like,
                  const Tensor& images,
                  const StochasticDepthParams& params,
                  Body&& body) {
  if (like.numel() == 0) return;
  const DepthDraw draw(params);
  const int64_t features = like.shape().stride0();
  const int64_t count = images.numel();
  const int64_t* image = images.data<int64_t>();
  const int64_t parts = like.numel() < kElementsPerFork ? 1 : stream.threads();
  stream.fork(parts, [&](int64_t part, int) {
    for (int64_t n = count * part / parts; n < count * (part + 1) / parts; ++n) {
      body(n * features, features, draw.factor(image[n]));
    }
  });
}

}  // namespace

void stochastic_depth_forward(Stream& stream,
                              const Tensor& branch,
                              const Tensor& shortcut,
                              const Tensor& images,
                              const StochasticDepthParams& params,
                              Tensor& out) {
  dispatch_float(branch.dtype(), [&]<class T>() {
    const T* of_branch = branch.data<T>();
    const T* of_shortcut = shortcut.data<T>();
    T* to = out.data<T>();
    for_branches(stream, branch, images, params, [=](int64_t at, int64_t n, float factor) {
      const Line factors = everywhere(factor);
      map_lines(
          n,
          to + at,
          [&](const Line& a, const Line& b) {
            const Line sum = factors * a + b;
            return gated(sum, sum);
          },
          of_branch + at,
          of_shortcut + at);
    });
  });
}

void stochastic_depth_backward(Stream& stream,
                               const Tensor& out,
                               const Tensor& images,
                               const StochasticDepthParams& params,
                               Tensor& grad,
                               Tensor& grad_branch) {
  dispatch_float(out.dtype(), [&]<class T>() {
    const T* gate = out.data<T>();
    T* both = grad.data<T>();
    T* of_branch = grad_branch.data<T>();
    for_branches(stream, out, images, params, [=](int64_t at, int64_t n, float factor) {
      const Line factors = everywhere(factor);
      map_lines(
          n,
          both + at,
          [](const Line& open, const Line& value) { return gated(open, value); },
          gate + at,
          both + at);
      map_lines(n, of_branch + at, [&](const Line& value) { return factors * value; }, both + at);
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
