#include "tests/support/close.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/float_types.h"

namespace lockstep::testing {
namespace {

template <class Want>
::testing::AssertionResult compare(std::span<const float> got,
                                   std::span<const Want> want,
                                   Tolerance tolerance) {
  if (got.size() != want.size()) {
    return ::testing::AssertionFailure()
           << "got " << got.size() << " elements, want " << want.size();
  }
  size_t bad = 0;
  size_t worst = 0;
  double worst_excess = -1;
  for (size_t i = 0; i < got.size(); ++i) {
    const double g = got[i];
    const double w = static_cast<double>(want[i]);
    if (std::isnan(g) && std::isnan(w)) continue;
    if (std::isinf(w) && g == w) continue;
    const double allowed = tolerance.abs + tolerance.rel * std::abs(w);
    const double difference = std::abs(g - w);
    if (difference <= allowed && !std::isinf(w)) continue;
    ++bad;
    const double excess =
        std::isfinite(difference) ? difference / std::max(allowed, 1e-300) : INFINITY;
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (bad == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << bad << " of " << got.size() << " elements differ; worst at [" << worst << "]: got "
         << got[worst] << ", want " << want[worst] << " (rel " << tolerance.rel << ", abs "
         << tolerance.abs << ")";
}

// The bits of element i may differ if excused(i) is true.
template <class Excused>
::testing::AssertionResult same_elements(const Tensor& got, const Tensor& want, Excused&& excused) {
  if (got.shape() != want.shape() || got.dtype() != want.dtype()) {
    return ::testing::AssertionFailure()
           << "got " << name_of(got.dtype()) << to_string(got.shape()) << ", want "
           << name_of(want.dtype()) << to_string(want.shape());
  }
  const auto size = static_cast<int64_t>(size_of(got.dtype()));
  for (int64_t i = 0; i < got.numel(); ++i) {
    if (std::memcmp(got.bytes() + i * size, want.bytes() + i * size, static_cast<size_t>(size)) !=
            0 &&
        !excused(i)) {
      return ::testing::AssertionFailure() << "bits differ first at element " << i;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace

Tolerance f32_sum(int64_t terms) {
  constexpr double kUnit = 0x1p-24;
  const double growth = std::sqrt(static_cast<double>(std::max<int64_t>(terms, 1)));
  return {.rel = 8 * kUnit, .abs = 8 * kUnit * growth};
}

::testing::AssertionResult close(std::span<const float> got,
                                 std::span<const float> want,
                                 Tolerance tolerance) {
  return compare(got, want, tolerance);
}

::testing::AssertionResult close(std::span<const float> got,
                                 std::span<const double> want,
                                 Tolerance tolerance) {
  return compare(got, want, tolerance);
}

::testing::AssertionResult same_bits(const Tensor& got, const Tensor& want) {
  return same_elements(got, want, [](int64_t) { return false; });
}

::testing::AssertionResult same_bits_or_nan(const Tensor& got, const Tensor& want) {
  return same_elements(
      got, want, [&](int64_t i) { return std::isnan(get(got, i)) && std::isnan(get(want, i)); });
}

}  // namespace lockstep::testing
