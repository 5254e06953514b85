// One thread per pack of 16 bytes, which makes its own draw; per element if an image's size is not
// a multiple of a pack's. Traffic per element: 3 values in the forward pass, 4 in the backward
// pass. Bound: DRAM.
#include "kernels/random/depth_draw.h"
#include "kernels/random/stochastic_depth.h"
#include "kernels/support/cuda/elementwise.cuh"
#include "kernels/support/cuda/numeric.cuh"

namespace lockstep::kernels::cuda {
namespace {

template <class T>
struct DepthForward {
  static constexpr int kCount = 16 / sizeof(T);
  DepthDraw draw;
  int64_t features;  // elements per image
  const int64_t* images;
  const T* branch;
  const T* shortcut;
  T* out;

  template <int n>
  __device__ void run(int64_t first) const {
    const float factor = draw.factor(images[divide(first, features)]);
    const Pack<T, n> added = load_pack<n>(shortcut + first);
    Pack<T, n> pack = load_pack<n>(branch + first);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float sum = factor * to_float(pack[i]) + to_float(added[i]);
      pack[i] = from_float<T>(sum <= 0 ? 0 : sum);
    }
    store_pack(out + first, pack);
  }
};

template <class T>
struct DepthBackward {
  static constexpr int kCount = 16 / sizeof(T);
  DepthDraw draw;
  int64_t features;  // elements per image
  const int64_t* images;
  const T* out;
  T* grad;
  T* grad_branch;

  template <int n>
  __device__ void run(int64_t first) const {
    const float factor = draw.factor(images[divide(first, features)]);
    const Pack<T, n> gate = load_pack<n>(out + first);
    Pack<T, n> pack = load_pack<n>(grad + first);
    Pack<T, n> of_branch;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float value = to_float(gate[i]) <= 0 ? 0 : to_float(pack[i]);
      pack[i] = from_float<T>(value);
      of_branch[i] = from_float<T>(factor * value);
    }
    store_pack(grad + first, pack);
    store_pack(grad_branch + first, of_branch);
  }
};

}  // namespace

void stochastic_depth_forward(Stream& stream,
                              const Tensor& branch,
                              const Tensor& shortcut,
                              const Tensor& images,
                              const StochasticDepthParams& params,
                              Tensor& out) {
  if (branch.numel() == 0) return;
  const int64_t features = branch.shape().stride0();
  with_float_type(branch.dtype(), [&]<class T>() {
    const DepthForward<T> body{DepthDraw(params),
                               features,
                               images.data<int64_t>(),
                               elements<T>(branch),
                               elements<T>(shortcut),
                               elements<T>(out)};
    launch_elementwise(stream,
                       "stochastic_depth_forward",
                       branch.numel(),
                       body,
                       {body.branch, body.shortcut, body.out},
                       features % body.kCount == 0);
  });
}

void stochastic_depth_backward(Stream& stream,
                               const Tensor& out,
                               const Tensor& images,
                               const StochasticDepthParams& params,
                               Tensor& grad,
                               Tensor& grad_branch) {
  if (out.numel() == 0) return;
  const int64_t features = out.shape().stride0();
  with_float_type(out.dtype(), [&]<class T>() {
    const DepthBackward<T> body{DepthDraw(params),
                                features,
                                images.data<int64_t>(),
                                elements<T>(out),
                                elements<T>(grad),
                                elements<T>(grad_branch)};
    launch_elementwise(stream,
                       "stochastic_depth_backward",
                       out.numel(),
                       body,
                       {body.out, body.grad, body.grad_branch},
                       features % body.kCount == 0);
  });
}

}  // namespace lockstep::kernels::cuda
