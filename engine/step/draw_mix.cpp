#include "engine/step/draw_mix.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/philox.h"

namespace lockstep {
namespace {

// Draws from (0, 1), so that the number has a logarithm.
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

double beta_variate(double alpha, PhiloxStream& numbers) {
  const double one = log_gamma_variate(alpha, numbers);
  const double other = log_gamma_variate(alpha, numbers);
  return 1 / (1 + std::exp(other - one));
}

PhiloxStream stream_of(RandomPurpose purpose, uint64_t seed, int64_t epoch, int64_t batch) {
  return {seed, purpose, static_cast<uint32_t>(epoch), static_cast<uint64_t>(batch)};
}

}  // namespace

float draw_mix(double alpha, uint64_t seed, int64_t epoch, int64_t batch) {
  PhiloxStream numbers = stream_of(RandomPurpose::kMixup, seed, epoch, batch);
  return static_cast<float>(beta_variate(alpha, numbers));
}

CutMix cut_mix(const data::ImageSize& size, double share, int64_t x, int64_t y) {
  const double half = 0.5 * std::sqrt(1 - share);
  const auto half_height = static_cast<int64_t>(half * static_cast<double>(size.height));
  const auto half_width = static_cast<int64_t>(half * static_cast<double>(size.width));
  CutMix cut;
  cut.box.top = std::max<int64_t>(0, y - half_height);
  cut.box.left = std::max<int64_t>(0, x - half_width);
  cut.box.height = std::min(size.height, y + half_height) - cut.box.top;
  cut.box.width = std::min(size.width, x + half_width) - cut.box.left;
  const auto area = static_cast<double>(cut.box.height * cut.box.width);
  cut.mix = static_cast<float>(1 - area / static_cast<double>(size.height * size.width));
  return cut;
}

CutMix draw_cut_mix(
    double alpha, const data::ImageSize& size, uint64_t seed, int64_t epoch, int64_t batch) {
  PhiloxStream numbers = stream_of(RandomPurpose::kCutMix, seed, epoch, batch);
  const double share = beta_variate(alpha, numbers);
  const int64_t x = numbers.below(static_cast<uint32_t>(size.width));
  const int64_t y = numbers.below(static_cast<uint32_t>(size.height));
  return cut_mix(size, share, x, y);
}

bool draw_whether_cut(uint64_t seed, int64_t epoch, int64_t batch) {
  return stream_of(RandomPurpose::kMixChoice, seed, epoch, batch).below(2) == 1;
}

}  // namespace lockstep
