// Specification of kernels/optim/gradient_factors.h in double, one tensor at a time.
#pragma once

namespace lockstep::reference {

struct LarcTensor {
  double param_norm, scaled_grad_norm, weight_decay;
};

inline double larc_factor(
    const LarcTensor& tensor, double trust, double eps, bool clip, double lr, double scale) {
  const double grad_norm = tensor.scaled_grad_norm / scale;
  if (grad_norm == 0) return 0;
  if (tensor.param_norm == 0) return 1;
  const double a =
      trust * tensor.param_norm / (grad_norm + tensor.weight_decay * tensor.param_norm + eps);
  if (!clip) return a;
  const double part = a / lr;
  return part > 1 ? 1 : part;  // a NaN remains NaN
}

}  // namespace lockstep::reference
