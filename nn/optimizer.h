// Optimizers: what turns gradients into new parameters.
#pragma once

#include <vector>

#include "core/stream.h"
#include "kernels/sgd.h"
#include "nn/module.h"

namespace lockstep::nn {

// Owns: its state tensors; shares the parameters. Thread safety: none.
class Optimizer {
 public:
  Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  // Forgets the gradients of the last step.
  virtual void zero_grad() = 0;
  // Updates the parameters in place. Requires: every gradient is reduced, of its parameter's shape.
  // Parameters without a gradient are left alone.
  virtual void step(Stream& stream) = 0;
  virtual void set_lr(float lr) = 0;
  // What a resumed run needs beside the parameters, sharing memory: "<parameter>.momentum_buffer",
  // of the parameter's file shape, and the like.
  virtual std::vector<StateEntry> state() const = 0;
};

// Source: torch.optim.SGD. Exact rule: kernels/sgd.h.
class Sgd : public Optimizer {
 public:
  Sgd(std::vector<NamedParameter> parameters, const kernels::SgdParams& params);

  void zero_grad() override;
  void step(Stream& stream) override;
  void set_lr(float lr) override { params_.lr = lr; }
  std::vector<StateEntry> state() const override;

 private:
  std::vector<NamedParameter> parameters_;
  kernels::SgdParams params_;
  std::vector<Tensor> momentum_;  // one a parameter; empty without momentum
};

}  // namespace lockstep::nn
