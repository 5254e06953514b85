#include "kernels/elementwise/fill.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {
namespace {

template <class T>
void fill_with(Stream& stream, T value, Tensor& out) {
  T* to = out.data<T>();
  for_ranges(stream, out.numel(), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = value;
  });
}

}  // namespace

void fill(Stream& stream, double value, Tensor& out) {
  switch (out.dtype()) {
    case Dtype::kF32:
      return fill_with(stream, static_cast<float>(value), out);
    case Dtype::kF16:
      return fill_with(stream, Half(round_to_odd(value)), out);
    case Dtype::kBF16:
      return fill_with(stream, BFloat16(round_to_odd(value)), out);
    case Dtype::kU8:
      return fill_with(stream, static_cast<uint8_t>(value), out);
    case Dtype::kI32:
      return fill_with(stream, static_cast<int32_t>(value), out);
    case Dtype::kI64:
      return fill_with(stream, static_cast<int64_t>(value), out);
  }
}

}  // namespace lockstep::kernels::LS_CPU
