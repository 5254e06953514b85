#include "kernels/random/fill_uniform.h"

#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "core/philox.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

// The next smaller float.
float below(float value) {
  return std::nextafter(value, -std::numeric_limits<float>::infinity());
}
template <class T>
T below(T value) {
  constexpr auto kSign = uint16_t{0x8000};
  const bool zero = (value.bits & 0x7fffU) == 0;
  const bool negative = (value.bits & kSign) != 0;
  value.bits = static_cast<uint16_t>(zero ? kSign + 1 : negative ? value.bits + 1 : value.bits - 1);
  return value;
}

template <class T>
UniformRange range_of(float low, float high) {
  const T first(low);
  const T end(high);
  return {.low = static_cast<float>(first),
          .width = static_cast<float>(end) - static_cast<float>(first),
          .last = static_cast<float>(below(end))};
}

}  // namespace

UniformRange uniform_range(Dtype dtype, float low, float high) {
  if (dtype == Dtype::kF16) return range_of<Half>(low, high);
  if (dtype == Dtype::kBF16) return range_of<BFloat16>(low, high);
  return range_of<float>(low, high);
}

void fill_uniform(Stream& stream, const FillUniformParams& params, Tensor& out) {
  const OpCheck check("fill_uniform", stream);
  check.floating("out", out);
  const float width = uniform_range(out.dtype(), params.low, params.high).width;
  check.require(width > 0 && std::isfinite(width),
                fmt::format("low < high, finite in {}: got {} and {}",
                            name_of(out.dtype()),
                            params.low,
                            params.high));
  if (check.dry(kPhiloxOperations * out.numel(), bytes_of(out))) return;
  LS_DISPATCH(fill_uniform, (stream, params, out))
}

}  // namespace lockstep::kernels
