#include "kernels/elementwise/gelu.h"
#include "kernels/elementwise/gelu_rule.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

template <GeluForm kForm>
[[gnu::always_inline]] inline Line gelu_of(const Line& in) {
  return Line::make([&] [[gnu::always_inline]] (int64_t i) {
    const Line::Vector x = in.parts[i];
    return x * gelu_factor<kForm, Line::Vector, LineWords>(x).value;
  });
}

template <GeluForm kForm>
[[gnu::always_inline]] inline Line gelu_gradient_of(const Line& in, const Line& grad_out) {
  return Line::make([&] [[gnu::always_inline]] (int64_t i) {
    return grad_out.parts[i] * gelu_factor<kForm, Line::Vector, LineWords>(in.parts[i]).slope;
  });
}

}  // namespace

void gelu_forward(Stream& stream, const Tensor& in, GeluForm form, Tensor& out) {
  dispatch_float(in.dtype(), [&]<class T>() {
    const T* from = in.data<T>();
    T* to = out.data<T>();
    for_ranges(stream, in.numel(), [=](int64_t begin, int64_t end) {
      with_gelu_form(form, [&]<GeluForm kForm>() {
        map_lines(end - begin, to + begin, gelu_of<kForm>, from + begin);
      });
    });
  });
}

void gelu_backward(
    Stream& stream, const Tensor& in, const Tensor& grad_out, GeluForm form, Tensor& grad_in) {
  dispatch_float(in.dtype(), [&]<class T>() {
    const T* inputs = in.data<T>();
    const T* from = grad_out.data<T>();
    T* to = grad_in.data<T>();
    for_ranges(stream, in.numel(), [=](int64_t begin, int64_t end) {
      with_gelu_form(form, [&]<GeluForm kForm>() {
        map_lines(end - begin, to + begin, gelu_gradient_of<kForm>, inputs + begin, from + begin);
      });
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
