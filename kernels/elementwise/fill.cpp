#include "kernels/elementwise/fill.h"

#include <cmath>

#include <fmt/core.h>

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

// An integer in [low, low + 2^bits).
bool fits(double value, double low, int bits) {
  return value == std::trunc(value) && value >= low && value < low + std::ldexp(1.0, bits);
}

bool holds(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::kU8:
      return fits(value, 0, 8);
    case Dtype::kI32:
      return fits(value, -0x1p31, 32);
    case Dtype::kI64:
      return fits(value, -0x1p63, 64);
    default:
      return true;
  }
}

}  // namespace

void fill(Stream& stream, double value, Tensor& out) {
  const OpCheck check("fill", stream);
  check.dtype(
      "out", out, {Dtype::kF32, Dtype::kF16, Dtype::kBF16, Dtype::kU8, Dtype::kI32, Dtype::kI64});
  if (!holds(out.dtype(), value)) {
    throw DtypeError(fmt::format(
        "[fill] value: got {}, expected one that {} holds", value, name_of(out.dtype())));
  }
  if (check.dry(0, bytes_of(out))) return;
  LS_DISPATCH(fill, (stream, value, out))
}

}  // namespace lockstep::kernels
