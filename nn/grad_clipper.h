// Limits the norm of all gradients together.
#pragma once

#include "nn/optimizer.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// Call clip() when gradients are summed over ranks and before the optimizer's step(), which then
// shrinks them as it reads them. Norms are those of unscaled gradients, in an order that no number
// of ranks changes. Source: torch.nn.utils.clip_grad_norm_. Exact rule:
// kernels/optim/gradient_factors.h
class GradClipper {
 public:
  // `optimizer` follows the factor from now on; it and the stream must outlive this. Requires:
  // max_norm > 0.
  GradClipper(Stream& stream, Optimizer& optimizer, float max_norm);

  void clip();

 private:
  Stream& stream_;
  Optimizer& optimizer_;
  float max_norm_;
  Tensor factor_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
