// LARC: a learning rate of its own for each parameter, by its norm and its gradient's.
#pragma once

#include <vector>

#include "kernels/optim/gradient_factors.h"
#include "nn/module.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

struct ParameterGroup;

struct LarcParams {
  double trust_coefficient = 0.02;
  bool clip = true;  // no rate is above the optimizer's own
};

// Computes the factors that Sgd multiplies gradients by. Norms are those of gradients that are
// summed over ranks, in an order that no number of ranks changes; nothing waits for the host.
// Source: Apex's parallel/LARC.py. Exact rule: kernels/optim/gradient_factors.h
class Larc {
 public:
  // Requires: params.trust_coefficient > 0.
  Larc(const std::vector<ParameterGroup>& groups, const LarcParams& params);

  // (n), of the n parameters in groups' order, valid until the next call; of those without a
  // gradient anything.
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
