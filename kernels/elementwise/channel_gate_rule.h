// The gate of channel_gate and its slope. The one definition for all devices.
#pragma once

#include "kernels/support/host_device.h"

namespace lockstep::kernels {

// The hard sigmoid, min(max(x + 3, 0), 6) / 6; NaN of NaN.
LS_HOST_DEVICE float hard_sigmoid(float x) {
  const float shifted = x + 3;
  const float positive = shifted < 0 ? 0 : shifted;
  return (positive > 6 ? 6 : positive) / 6;
}

// Gradient through the hard sigmoid: zero where it is flat, at the ends of the slope and for NaN,
// as in PyTorch.
LS_HOST_DEVICE float hard_sigmoid_gradient(float x, float gradient) {
  return x > -3 && x < 3 ? gradient / 6 : 0;
}

}  // namespace lockstep::kernels
