#include "kernels/random/uniform_range.h"

#include <cmath>
#include <limits>

namespace lockstep::kernels {
namespace {

// The neighbor of a finite value toward -infinity.
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

}  // namespace lockstep::kernels
