// Arithmetic of one element for the bodies of kernels/elementwise/gelu.h: Floats is float, or a
// vector of them, and Words as many uint32_t. Spec: tests/reference/gelu.h
#pragma once

#include <cstdint>

#include "kernels/elementwise/gelu.h"
#include "kernels/support/exp_of_minus.h"

namespace lockstep::kernels {

// Operations per element, including the multiplication by the factor.
constexpr int64_t gelu_flops(GeluForm form) {
  return form == GeluForm::kErf ? 46 : 32;
}
constexpr int64_t gelu_slope_flops(GeluForm form) {
  return form == GeluForm::kErf ? 49 : 40;
}

template <class Floats>
struct GeluFactor {
  Floats value;  // out / in
  Floats slope;  // grad_in / grad_out
};

// The tail probability beyond |x| is exp(-x^2/2) t p(t) with t = 1 / (1 + 0.35 |x|), where p is the
// best polynomial of degree 8, with a relative error of 3e-8 up to |x| = 13. Unlike 1 + erf it
// loses no digits to cancellation.
template <class Floats, class Words>
LS_HOST_DEVICE GeluFactor<Floats> erf_factor(Floats x) {
  const Floats distance = x < 0 ? -x : x;
  const Floats bell = exp_of_minus<Floats, Words>(distance * distance * 0.5F);
  const Floats t = 1.0F / (distance * 0.35F + 1.0F);
  Floats sum = t * -0.02912436F + 0.14385256F;
  sum = sum * t - 0.25543576F;
  sum = sum * t + 0.15881565F;
  sum = sum * t - 0.022833074F;
  sum = sum * t + 0.10537745F;
  sum = sum * t + 0.11986943F;
  sum = sum * t + 0.13985634F;
  sum = sum * t + 0.13962175F;
  const Floats tail = sum * t * bell;
  const Floats cdf = x < 0 ? tail : 1.0F - tail;
  return {.value = cdf, .slope = cdf + x * (bell * 0.3989423F)};
}

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), from exp(-2 |u|).
template <class Floats, class Words>
LS_HOST_DEVICE GeluFactor<Floats> tanh_factor(Floats x) {
  constexpr float kTwice = 1.5957692F;  // 2 sqrt(2 / pi)
  constexpr float kCubic = kTwice * 0.044715F;
  const Floats square = x * x;
  const Floats twice_u = x * (square * kCubic + kTwice);
  const Floats fall = exp_of_minus<Floats, Words>(twice_u < 0 ? -twice_u : twice_u);
  const Floats scale = 1.0F / (fall + 1.0F);
  const Floats value = twice_u < 0 ? fall * scale : scale;
  const Floats rise = square * (3 * kCubic) + kTwice;  // derivative of twice_u
  return {.value = value, .slope = value + x * (rise * (fall * scale * scale))};
}

template <GeluForm kForm, class Floats, class Words>
LS_HOST_DEVICE GeluFactor<Floats> gelu_factor(Floats x) {
  if constexpr (kForm == GeluForm::kErf) return erf_factor<Floats, Words>(x);
  return tanh_factor<Floats, Words>(x);
}

// body.operator()<form>().
template <class Body>
[[gnu::always_inline]] inline void with_gelu_form(GeluForm form, Body&& body) {
  if (form == GeluForm::kErf) return body.template operator()<GeluForm::kErf>();
  body.template operator()<GeluForm::kTanh>();
}

}  // namespace lockstep::kernels
