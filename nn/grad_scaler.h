// Loss scaling: gradients are multiplied by a factor, so that 16-bit types do not lose small ones.
#pragma once

#include <span>

#include "kernels/optim/loss_scale.h"
#include "nn/optimizer.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// A step consists of loss.backward(scaler.seed(..)), check() after gradients are summed over ranks,
// the optimizer's step(), and update(). A step with a gradient that is not finite is skipped: it
// changes neither parameters nor the optimizer's state. Only read() waits for the device. For an
// optimizer that does not see the scale itself, Optimizer::applies_control(), check() waits and
// divides the gradients, or removes them all if the step is to be skipped, and sets the rate.
// Source: torch.amp.GradScaler. Exact rule: kernels/optim/loss_scale.h
class GradScaler {
 public:
  // From now on `optimizer` divides gradients by the scale. It and the stream must outlive this
  // object.
  GradScaler(Stream& stream,
             Optimizer& optimizer,
             const kernels::LossScaleRule& rule,
             const kernels::LossScaleState& initial = {});
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;
  // From then on `optimizer` divides by nothing and counts steps itself. Before steps that follow,
  // call optimizer.set_applied_steps(read().applied).
  ~GradScaler();

  // Sets the learning rate of each applied step, from the run's first; the last one stays in
  // effect. From now on set_lr() has no effect. Requires: at least one rate.
  void set_learning_rates(std::span<const double> lrs);

  // The seed of backward() for a loss with this many leaves.
  Tensor seed(int64_t leaves) const;
  void check();
  // Errors: ShapeError for a rule out of range; UsageError for an optimizer whose gradients no
  // check() has divided.
  void update();

  // Waits for all queued work.
  kernels::LossScaleState read() const;
  void restore(const kernels::LossScaleState& state);
  const kernels::LossScaleRule& rule() const { return rule_; }

 private:
  Stream& stream_;
  Optimizer& optimizer_;
  void set_unscales(bool unscales);

  kernels::LossScaleRule rule_;
  Tensor state_;
  std::vector<double> lrs_;  // that check() sets; empty: the optimizer has a table or set_lr()
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
