#include "trainers/page/curve.h"

#include <algorithm>
#include <cmath>

namespace lockstep::trainers {
namespace {

CurvePoint merged(const CurvePoint& a, const CurvePoint& b) {
  const int64_t count = a.count + b.count;
  const double share = static_cast<double>(b.count) / static_cast<double>(count);
  return {.x = b.x,
          .mean = a.mean + (b.mean - a.mean) * share,
          .low = std::min(a.low, b.low),
          .high = std::max(a.high, b.high),
          .count = count};
}

}  // namespace

void Curve::add(double x, double value) {
  if (!std::isfinite(value)) {
    ++nonfinite_;
    return;
  }
  last_ = value;
  const CurvePoint point{.x = x, .mean = value, .low = value, .high = value, .count = 1};
  if (!points_.empty() && points_.back().count < stride_) {
    points_.back() = merged(points_.back(), point);
    return;
  }
  if (points_.size() == kPoints) {
    for (size_t i = 0; i < kPoints / 2; ++i)
      points_[i] = merged(points_[2 * i], points_[2 * i + 1]);
    points_.resize(kPoints / 2);
    stride_ *= 2;
  }
  points_.push_back(point);
}

double Curve::best_low() const {
  return std::ranges::min_element(points_, {}, &CurvePoint::low)->low;
}

double Curve::best_high() const {
  return std::ranges::max_element(points_, {}, &CurvePoint::high)->high;
}

double Curve::mean() const {
  double sum = 0;
  int64_t count = 0;
  for (const CurvePoint& point : points_) {
    sum += point.mean * static_cast<double>(point.count);
    count += point.count;
  }
  return sum / static_cast<double>(count);
}

}  // namespace lockstep::trainers
