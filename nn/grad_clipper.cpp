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
  kernels::clip_factor(stream_, norms, max_norm_, optimizer_.control().state, factor_);
}

}  // namespace lockstep::nn
