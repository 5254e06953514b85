// The gates of kernels/elementwise/channel_gate.h, to the same bits on all devices. Spec:
// tests/reference/channel_gate.h
#pragma once

#include <cstdint>

#include "kernels/elementwise/channel_gate.h"
#include "kernels/support/exp_of_minus.h"

namespace lockstep::kernels {

// g(x); NaN for NaN.
template <GateForm kForm>
LS_HOST_DEVICE float gate_value(float x) {
  if constexpr (kForm == GateForm::kSigmoid) {
    const float fall = exp_of_minus<float, uint32_t>(x < 0 ? -x : x);
    const float value = (x < 0 ? fall : 1.0F) / (fall + 1.0F);
    return x == x ? value : x;
  } else {
    const float shifted = x + 3;
    const float positive = shifted < 0 ? 0 : shifted;
    return (positive > 6 ? 6 : positive) / 6;
  }
}

// Gradient through g. The hard sigmoid's is zero where it is flat, at the ends of the slope and for
// NaN, as in PyTorch.
template <GateForm kForm>
LS_HOST_DEVICE float gate_gradient(float x, float gradient) {
  if constexpr (kForm == GateForm::kSigmoid) {
    const float fall = exp_of_minus<float, uint32_t>(x < 0 ? -x : x);
    const float scale = 1.0F / (fall + 1.0F);
    return gradient * (x == x ? fall * scale * scale : x);
  } else {
    return x > -3 && x < 3 ? gradient / 6 : 0;
  }
}

// body.operator()<form>().
template <class Body>
[[gnu::always_inline]] inline void with_gate_form(GateForm form, Body&& body) {
  if (form == GateForm::kSigmoid) return body.template operator()<GateForm::kSigmoid>();
  body.template operator()<GateForm::kHardSigmoid>();
}

}  // namespace lockstep::kernels
