#include "nn/grad_clipper.h"

#include "kernels/elementwise/fill.h"
#include "kernels/optim/gradient_factors.h"
#include "kernels/reduce/tensor_norms.h"

namespace lockstep::nn {

GradClipper::GradClipper(Stream& stream, Optimizer& optimizer, float max_norm)
    : stream_(stream),
      optimizer_(optimizer),
      max_norm_(max_norm),
      factor_(Tensor::empty({1}, Dtype::kF32, stream.device())) {
  kernels::fill(stream_, 1, factor_);
  if (!optimizer_.applies_control()) return;
  kernels::StepControl control = optimizer_.control();
  control.grad_factor = factor_;
  optimizer_.follow(control);
}

GradClipper::~GradClipper() {
  kernels::StepControl control = optimizer_.control();
  control.grad_factor = {};
  optimizer_.follow(control);
}

void GradClipper::clip() {
  const std::vector<Tensor> gradients = optimizer_.gradients();
  Tensor norms = Tensor::empty({std::ssize(gradients) + 1}, Dtype::kF32, stream_.device());
  kernels::tensor_norms(stream_, gradients, norms);
  const kernels::StepControl& control = optimizer_.control();
  const Tensor state = control.unscales ? control.state : Tensor();
  kernels::clip_factor(stream_, norms, max_norm_, state, factor_);
  if (!optimizer_.applies_control()) {
    optimizer_.multiply_gradients(stream_, {.grad_factor = factor_});
  }
}

}  // namespace lockstep::nn
