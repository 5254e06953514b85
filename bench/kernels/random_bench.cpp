#include "bench/kernels/op_bench.h"
#include "kernels/random/dropout.h"
#include "kernels/random/fill_uniform.h"
#include "kernels/random/stochastic_depth.h"

namespace lockstep::bench {
namespace {

const Cases kDropoutCases{.cpu = {kF32, {{64, 50}, {64, 4096}, {64, 50177}}},
                          .cuda = {kFloatTypes, {{256, 4096}, {256, 50177}, {256, 256, 56, 56}}}};

const Bench kDropoutForward("dropout_forward", kDropoutCases, [](Timer& t) {
  const Tensor in = t.random(t.shape(), t.dtype());
  const Tensor images = Tensor::zeros({t[0]}, Dtype::kI64, t.stream().device());
  Tensor out = t.empty(t.shape(), t.dtype());
  t.run(2 * in.nbytes(), [&] { kernels::dropout_forward(t.stream(), in, images, {}, out); });
});

const Bench kDropoutBackward("dropout_backward", kDropoutCases, [](Timer& t) {
  const Tensor grad_out = t.random(t.shape(), t.dtype());
  const Tensor images = Tensor::zeros({t[0]}, Dtype::kI64, t.stream().device());
  Tensor grad_in = t.empty(t.shape(), t.dtype());
  t.run(2 * grad_out.nbytes(),
        [&] { kernels::dropout_backward(t.stream(), grad_out, images, {}, grad_in); });
});

const Cases kDepthCases{.cpu = {kF32, {{32, 64, 56, 56}, {32, 512, 7, 7}}},
                        .cuda = {kFloatTypes, {{256, 256, 56, 56}, {256, 2048, 7, 7}}}};

const Bench kDepthForward("stochastic_depth_forward", kDepthCases, [](Timer& t) {
  const Tensor branch = t.random(t.shape(), t.dtype());
  const Tensor shortcut = t.random(t.shape(), t.dtype());
  const Tensor images = Tensor::zeros({t[0]}, Dtype::kI64, t.stream().device());
  Tensor out = t.empty(t.shape(), t.dtype());
  t.run(3 * branch.nbytes(), [&] {
    kernels::stochastic_depth_forward(t.stream(), branch, shortcut, images, {.p = 0.1}, out);
  });
});

const Bench kDepthBackward("stochastic_depth_backward", kDepthCases, [](Timer& t) {
  const Tensor out = t.random(t.shape(), t.dtype());
  const Tensor images = Tensor::zeros({t[0]}, Dtype::kI64, t.stream().device());
  Tensor grad = t.random(t.shape(), t.dtype());
  Tensor grad_branch = t.empty(t.shape(), t.dtype());
  t.run(4 * out.nbytes(), [&] {
    kernels::stochastic_depth_backward(t.stream(), out, images, {.p = 0.1}, grad, grad_branch);
  });
});

const Cases kFillUniformCases{.cpu = {kF32, {{29034}, {25557032}}},
                              .cuda = {kFloatTypes, {{25557032}}}};

const Bench kFillUniform("fill_uniform", kFillUniformCases, [](Timer& t) {
  Tensor out = t.empty(t.shape(), t.dtype());
  t.run(out.nbytes(), [&] { kernels::fill_uniform(t.stream(), {.seed = 1}, out); });
});

}  // namespace
}  // namespace lockstep::bench
