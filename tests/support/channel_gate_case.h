// Inputs of channel_gate and the expected results, for the tests of both backends.
#pragma once

#include <vector>

#include "kernels/elementwise/channel_gate.h"
#include "tests/reference/channel_gate.h"
#include "tests/support/float_types.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::testing {

inline const std::vector<Shape> kGatedShapes = {{3, 5, 1, 1},     // one pixel, no packs
                                                {3, 16, 3, 3},    // remaining pixels
                                                {2, 20, 7, 7},    // half packs
                                                {2, 18, 3, 2},    // quarter packs
                                                {70, 8, 2, 4},    // more than a block
                                                {1, 1027, 2, 1},  // more than fit at once
                                                {2, 4, 0, 2},
                                                {0, 4, 2, 2},
                                                {2, 0, 2, 2}};

inline const std::vector<kernels::GateForm> kGateForms = {kernels::GateForm::kHardSigmoid,
                                                          kernels::GateForm::kSigmoid};

struct ChannelGateCase {
  ChannelGateCase(const Shape& shape, Dtype dtype, kernels::GateForm gate_form)
      : form(gate_form),
        in(rounded_to(dtype, random_tensor(shape, 1))),
        grad_out(rounded_to(dtype, random_tensor(shape, 2))),
        gate(rounded_to(dtype, random_tensor({shape[0], shape[1]}, 3, -5, 5))) {}

  struct Results {
    Tensor out, grad_in, grad_gate;
  };
  // Runs on the CPU.
  Results run(Stream& stream,
              kernels::ChannelGateForward* forward = kernels::channel_gate_forward,
              kernels::ChannelGateBackward* backward = kernels::channel_gate_backward) const {
    Results got{poisoned_tensor(in.shape(), in.dtype()),
                poisoned_tensor(in.shape(), in.dtype()),
                poisoned_tensor(gate.shape(), in.dtype())};
    forward(stream, shards(), in, gate, form, got.out);
    backward(stream, shards(), {grad_out, in, gate, form, got.grad_in, got.grad_gate});
    return got;
  }
  std::vector<double> reference_out() const {
    return reference::channel_gate_forward(
        values_of(in), values_of(gate), sizes(), reference_form());
  }
  reference::GateGradients reference_gradients() const {
    return reference::channel_gate_backward(
        values_of(grad_out), values_of(in), values_of(gate), sizes(), reference_form());
  }
  // Returns the same values in f32.
  ChannelGateCase widened() const {
    ChannelGateCase wide = *this;
    for (Tensor* tensor : {&wide.in, &wide.grad_out, &wide.gate}) {
      *tensor = rounded_to(Dtype::kF32, *tensor);
    }
    return wide;
  }
  reference::GateOf* reference_form() const {
    return form == kernels::GateForm::kSigmoid ? reference::sigmoid_gate : reference::hard_gate;
  }
  Shards shards() const { return Shards::cut(in.shape()[0], 2, 1); }
  int64_t pixels() const { return in.shape()[2] * in.shape()[3]; }
  reference::GateSizes sizes() const {
    return {static_cast<size_t>(in.shape()[0]),
            static_cast<size_t>(in.shape()[1]),
            static_cast<size_t>(pixels())};
  }

  kernels::GateForm form;
  Tensor in, grad_out, gate;
};

}  // namespace lockstep::testing
