// LARC: a separate learning rate for each parameter, from its norm and its gradient's norm.
#pragma once

#include <vector>

#include "kernels/optim/gradient_factors.h"
#include "nn/module.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

struct ParameterGroup;

struct LarcParams {
  double trust_coefficient = 0.02;
  bool clip = true;  // limit each rate to the optimizer's learning rate
};

// Computes the factors that Sgd multiplies gradients by. Gradients must be summed over ranks
// before; norms are summed in an order that does not depend on the number of ranks. The host does
// not wait.
// Source: Apex's parallel/LARC.py. Exact rule: kernels/optim/gradient_factors.h
class Larc {
 public:
  // Requires: params.trust_coefficient > 0.
  Larc(const std::vector<ParameterGroup>& groups, const LarcParams& params);

  // Returns (n), one factor for each of the n parameters in groups' order, valid until the next
  // call. The factor of a parameter without a gradient is meaningless.
  const Tensor& factors(Stream& stream,
                        const std::vector<ParameterGroup>& groups,
                        const kernels::StepControl& control,
                        double lr);

 private:
  kernels::LarcParams params_;
  Tensor weight_decays_;
  Tensor factors_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
