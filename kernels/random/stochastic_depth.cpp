#include "kernels/random/stochastic_depth.h"

#include <fmt/core.h>

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

void check_depth(const OpCheck& check,
                 const Tensor& like,
                 const Tensor& images,
                 const StochasticDepthParams& params) {
  check.require(like.shape().rank() >= 1, "a tensor of images");
  check.like("images", images, {like.shape()[0]}, Dtype::kI64);
  check.require(params.p >= 0 && params.p <= 1,
                fmt::format("a probability p from 0 to 1: got {}", params.p));
}

}  // namespace

void stochastic_depth_forward(Stream& stream,
                              const Tensor& branch,
                              const Tensor& shortcut,
                              const Tensor& images,
                              const StochasticDepthParams& params,
                              Tensor& out) {
  const OpCheck check("stochastic_depth_forward", stream);
  check.floating("branch", branch);
  check_depth(check, branch, images, params);
  check.like("shortcut", shortcut, branch.shape(), branch.dtype());
  check.like("out", out, branch.shape(), branch.dtype());
  if (check.dry(3 * branch.numel(), bytes_of(branch, shortcut, images, out))) return;
  LS_DISPATCH(stochastic_depth_forward, (stream, branch, shortcut, images, params, out))
}

void stochastic_depth_backward(Stream& stream,
                               const Tensor& out,
                               const Tensor& images,
                               const StochasticDepthParams& params,
                               Tensor& grad,
                               Tensor& grad_branch) {
  const OpCheck check("stochastic_depth_backward", stream);
  check.floating("out", out);
  check_depth(check, out, images, params);
  check.like("grad", grad, out.shape(), out.dtype());
  check.like("grad_branch", grad_branch, out.shape(), out.dtype());
  if (check.dry(2 * out.numel(), bytes_of(out, images, grad, grad, grad_branch))) return;
  LS_DISPATCH(stochastic_depth_backward, (stream, out, images, params, grad, grad_branch))
}

}  // namespace lockstep::kernels
