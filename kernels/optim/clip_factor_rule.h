// Code that the bodies of kernels/optim/clip_factor.h share.
#pragma once

#include "kernels/optim/loss_scale_rule.h"
#include "kernels/support/host_device.h"

namespace lockstep::kernels {

LS_HOST_DEVICE float clip_factor_of(float norm, float max_norm, const LossScaleState* state) {
  if (state != nullptr) norm /= state->scale;
  const float factor = max_norm / (norm + 1e-6F);
  return factor > 1 ? 1 : factor;
}

}  // namespace lockstep::kernels
