// Test cases of the option-A shortcut, for the CPU and for CUDA.
#pragma once

#include "kernels/pool/subsample_pad.h"
#include "tests/reference/subsample_pad.h"

namespace lockstep::testing {

struct SubsampleCase {
  Shape in;
  int64_t channels;
  int stride;

  Shape out() const { return kernels::subsample_pad_output_shape(in, channels, stride); }
  reference::SubsamplePadGeometry geometry() const {
    const auto extent = [&](int axis) { return static_cast<size_t>(in[axis]); };
    return {extent(0),
            extent(1),
            extent(2),
            extent(3),
            static_cast<size_t>(channels),
            static_cast<size_t>(stride)};
  }
};

}  // namespace lockstep::testing
