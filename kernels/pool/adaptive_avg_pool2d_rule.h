// Which pixels a window of adaptive_avg_pool2d holds. The one definition for all devices.
#pragma once

#include "kernels/support/host_device.h"

namespace lockstep::kernels {

struct PoolSpan {
  int begin, end;
};

// Returns window i of `parts` windows over `size` pixels. With the two exchanged it returns the
// windows that hold pixel i.
LS_HOST_DEVICE PoolSpan pool_span(int i, int size, int parts) {
  return {i * size / parts, ((i + 1) * size + parts - 1) / parts};
}

}  // namespace lockstep::kernels
