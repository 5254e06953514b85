// A histogram of fixed size of the times of a run's steps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace lockstep {

// Bins of equal ratio, each 2 % wide: at most about a thousand between a microsecond and an hour.
class StepTimes {
 public:
  struct Bin {
    double low_s = 0, high_s = 0;
    int64_t count = 0;
  };

  // Requires: finite seconds.
  void add(double seconds) { add(bin_of(seconds), 1); }
  // Restores what bins() gave; returns nothing for bins that it never gives.
  static std::optional<StepTimes> of(const std::vector<Bin>& bins);

  std::vector<Bin> bins() const;  // those with steps, from the shortest on
  int64_t count() const { return count_; }
  // The time below which this fraction of the steps stayed, to the width of a bin. Requires: there
  // are steps.
  double quantile(double fraction) const;

 private:
  static int bin_of(double seconds);
  void add(int bin, int64_t count);

  std::map<int, int64_t> counts_;  // by bin
  int64_t count_ = 0;
};

}  // namespace lockstep
