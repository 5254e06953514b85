// Mixes images and their labels: kernels/image/mix_images.h, kernels/loss/softmax_cross_entropy.h.
#pragma once

#include <cstdint>

#include "kernels/support/host_device.h"

namespace lockstep::kernels {

// Whom row n of the shard [begin, end) is mixed with.
LS_HOST_DEVICE int64_t partner_of(int64_t begin, int64_t end, int64_t n) {
  return begin + end - 1 - n;
}

LS_HOST_DEVICE float mixed(float mix, float own, float others) {
  return mix * own + (1 - mix) * others;
}

}  // namespace lockstep::kernels
