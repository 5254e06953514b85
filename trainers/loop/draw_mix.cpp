#include "trainers/loop/draw_mix.h"

#include <cmath>
#include <numbers>

#include "core/philox.h"

namespace lockstep::trainers {
namespace {

// In (0, 1), so that it has a logarithm.
double uniform(PhiloxStream& numbers) {
  return (numbers.next() + 0.5) * 0x1p-32;
}

double normal(PhiloxStream& numbers) {
  const double radius = std::sqrt(-2 * std::log(uniform(numbers)));
  return radius * std::cos(2 * std::numbers::pi * uniform(numbers));
}

// The logarithm of a variate of Gamma(shape): for small shapes the variate itself may be 0.
// Source: Marsaglia and Tsang 2000, "A simple method for generating gamma variables".
double log_gamma_variate(double shape, PhiloxStream& numbers) {
  if (shape < 1) {
    const double of_next = log_gamma_variate(shape + 1, numbers);
    return of_next + std::log(uniform(numbers)) / shape;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(numbers);
    const double v = 1 + c * x;
    const double u = uniform(numbers);
    if (v <= 0) continue;
    const double log_v = 3 * std::log(v);
    if (std::log(u) < x * x / 2 + d * (1 - v * v * v + log_v)) return std::log(d) + log_v;
  }
}

}  // namespace

float draw_mix(double alpha, uint64_t seed, int64_t epoch, int64_t batch) {
  PhiloxStream numbers(
      seed, RandomPurpose::kMixup, static_cast<uint32_t>(epoch), static_cast<uint64_t>(batch));
  const double one = log_gamma_variate(alpha, numbers);
  const double other = log_gamma_variate(alpha, numbers);
  return static_cast<float>(1 / (1 + std::exp(other - one)));
}

}  // namespace lockstep::trainers
