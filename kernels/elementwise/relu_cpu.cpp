#include <type_traits>

#include "kernels/elementwise/relu.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// gate <= 0 ? 0 : value. A NaN is not <= 0.
[[gnu::always_inline]] inline float gated(float gate, float value) {
  return gate <= 0 ? 0 : value;
}

// Compares bits: gate <= 0 means +0, or a value from -0 to -infinity.
template <class T>
[[gnu::always_inline]] inline T gated(T gate, T value) {
  constexpr uint16_t kInfinity = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;
  const auto sign_flipped = static_cast<uint16_t>(gate.bits ^ 0x8000U);
  const bool closed = (gate.bits == 0) | (sign_flipped <= kInfinity);
  value.bits = closed ? uint16_t{0} : value.bits;
  return value;
}

// out[i] = gated(gates[i], values[i]). The tensors may be the same.
void gate_all(Stream& stream, const Tensor& gates, const Tensor& values, Tensor& out) {
  dispatch_float(values.dtype(), [&]<class T>() {
    const T* gate = gates.data<T>();
    const T* from = values.data<T>();
    T* to = out.data<T>();
    for_ranges(stream, values.numel(), [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) {
        const T value = from[i];
        to[i] = gated(gate[i], value);
      }
    });
  });
}

}  // namespace

void relu_forward(Stream& stream, const Tensor& in, Tensor& out) {
  gate_all(stream, in, in, out);
}

void relu_backward(Stream& stream, const Tensor& out, const Tensor& grad_out, Tensor& grad_in) {
  gate_all(stream, out, grad_out, grad_in);
}

}  // namespace lockstep::kernels::LS_CPU
