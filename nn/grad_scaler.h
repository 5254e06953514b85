// Loss scaling: gradients that a 16-bit type would lose are multiplied on their way.
#pragma once

#include <span>

#include "kernels/optim/loss_scale.h"
#include "nn/optimizer.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// A step: loss.backward(scaler.seed(..)), check() when gradients are summed over ranks, the
// optimizer's step(), then update(). A step with a gradient that is not finite is skipped: it
// changes neither parameters nor the optimizer's state. Nothing waits for the host but read().
// Source: torch.amp.GradScaler. Exact rule: kernels/optim/loss_scale.h
class GradScaler {
 public:
  // `optimizer` follows the scale from now on; it and the stream must outlive this.
  GradScaler(Stream& stream,
             Optimizer& optimizer,
             const kernels::LossScaleRule& rule,
             const kernels::LossScaleState& initial = {});

  // By applied steps from the run's first; the last one holds. set_lr() has no effect any more.
  void set_learning_rates(std::span<const double> lrs);

  // The seed of backward() for a loss of so many leaves.
  Tensor seed(int64_t leaves) const;
  void check();
  // Errors: ShapeError for a rule out of range.
  void update();

  // Waits for what was queued.
  kernels::LossScaleState read() const;
  void restore(const kernels::LossScaleState& state);
  const kernels::LossScaleRule& rule() const { return rule_; }

 private:
  Stream& stream_;
  Optimizer& optimizer_;
  kernels::LossScaleRule rule_;
  Tensor state_;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
