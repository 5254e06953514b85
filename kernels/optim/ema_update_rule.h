// Code that the bodies of kernels/optim/ema_update.h share.
#pragma once

#include "kernels/optim/ema_update.h"
#include "kernels/optim/loss_scale_rule.h"
#include "kernels/support/host_device.h"

namespace lockstep::kernels {

struct EmaNow {
  float keep, take;  // mu, 1 - mu
  bool skip;
};

LS_HOST_DEVICE EmaNow ema_now(double decay, int64_t step, const LossScaleState* state) {
  if (state != nullptr) step = state->applied + 1;
  const double warm = static_cast<double>(1 + step) / static_cast<double>(10 + step);
  const double mu = warm < decay ? warm : decay;
  return {static_cast<float>(mu),
          static_cast<float>(1 - mu),
          state != nullptr && state->found_inf != 0};
}

LS_HOST_DEVICE float averaged(const EmaNow& now, float value, float ema) {
  return now.keep * ema + now.take * value;
}

}  // namespace lockstep::kernels
