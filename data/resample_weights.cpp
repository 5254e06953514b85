#include "data/resample_weights.h"

#include <algorithm>
#include <cmath>

namespace lockstep::data {
namespace {

// Halves go up.
int64_t nearest(double x) {
  return static_cast<int64_t>(std::floor(x + 0.5));
}

}  // namespace

ResampleWeights::ResampleWeights(const Axis& axis, int64_t out, int64_t first, int64_t count) {
  const double scale = axis.extent / static_cast<double>(out);
  const double support = std::max(scale, 1.0);  // half the triangle's width
  pitch_ = static_cast<size_t>(2 * static_cast<int64_t>(std::ceil(support)) + 1);
  parts_.reserve(static_cast<size_t>(count));
  weights_.resize(static_cast<size_t>(count) * pitch_);
  std::vector<double> exact(pitch_);
  for (int64_t i = 0; i < count; ++i) {
    const double center = axis.skip + (static_cast<double>(first + i) + 0.5) * scale;
    const auto begin = std::max<int64_t>(nearest(center - support), 0);
    const auto end = std::min<int64_t>(nearest(center + support), axis.in);
    double sum = 0;
    for (int64_t x = begin; x < end; ++x) {
      const double distance = std::abs((static_cast<double>(x) - center + 0.5) * (1 / support));
      sum += exact[static_cast<size_t>(x - begin)] = std::max(1 - distance, 0.0);
    }
    for (int64_t k = 0; k < end - begin; ++k) {
      const double weight = exact[static_cast<size_t>(k)] / sum;
      weights_[static_cast<size_t>(i) * pitch_ + static_cast<size_t>(k)] =
          static_cast<int32_t>(nearest(weight * (1 << kFractionBits)));
    }
    parts_.push_back({begin, end - begin});
  }
}

}  // namespace lockstep::data
