// A curve of any length, kept in bounded memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::trainers {

// A group of `count` values that are neighbors along x.
struct CurvePoint {
  double x = 0;  // the last one's
  double mean = 0;
  double low = 0;
  double high = 0;
  int64_t count = 0;
};

// Keeps at most kPoints points. Beyond that, neighbors are merged in pairs, and later points hold
// twice as many values.
class Curve {
 public:
  static constexpr size_t kPoints = 600;  // even; about one per pixel of a chart

  // x must not decrease. Values that are not finite are counted and left out.
  void add(double x, double value);

  std::span<const CurvePoint> points() const { return points_; }
  bool empty() const { return points_.empty(); }
  double last() const { return last_; }  // value. Requires: not empty
  double best_low() const;               // the smallest value so far. Requires: not empty
  double best_high() const;
  double mean() const;  // of all values. Requires: not empty
  int64_t nonfinite() const { return nonfinite_; }

 private:
  std::vector<CurvePoint> points_;
  int64_t stride_ = 1;  // values a point
  double last_ = 0;
  int64_t nonfinite_ = 0;
};

}  // namespace lockstep::trainers
