// Gradient clipping by the global norm of all gradients.
#pragma once

#include "nn/optimizer.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// Call clip() after gradients are summed over ranks and before the optimizer's step(), which then
// multiplies gradients by the clipping factor as it reads them; for an optimizer that does not,
// Optimizer::applies_control(), clip() multiplies them. Norms are of unscaled gradients;
// they are summed in an order that does not depend on the number of ranks. Source:
// torch.nn.utils.clip_grad_norm_. Exact rule: kernels/optim/gradient_factors.h
class GradClipper {
 public:
  // From now on `optimizer` applies the clipping factor. It and the stream must outlive this
  // object. Requires: max_norm > 0.
  GradClipper(Stream& stream, Optimizer& optimizer, float max_norm);
  GradClipper(const GradClipper&) = delete;
  GradClipper& operator=(const GradClipper&) = delete;
  ~GradClipper();

  void clip();

 private:
  Stream& stream_;
  Optimizer& optimizer_;
  float max_norm_;
  Tensor factor_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
