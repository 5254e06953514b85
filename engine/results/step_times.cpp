#include "engine/results/step_times.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kShortest = 1e-6, kLongest = 3600;  // seconds; what is beyond falls into the ends
constexpr double kRatio = 1.02;
constexpr int64_t kMaxSteps = int64_t{1} << 53;

double low_of(int bin) {
  return kShortest * std::pow(kRatio, bin);
}

}  // namespace

int StepTimes::bin_of(double seconds) {
  const double inside = std::clamp(seconds, kShortest, kLongest);
  return static_cast<int>(std::floor(std::log(inside / kShortest) / std::log(kRatio)));
}

void StepTimes::add(int bin, int64_t count) {
  counts_[bin] += count;
  count_ += count;
}

std::optional<StepTimes> StepTimes::of(const std::vector<Bin>& bins) {
  StepTimes times;
  for (const Bin& bin : bins) {
    const bool ordered = bin.low_s > 0 && bin.low_s <= bin.high_s && bin.high_s <= 2 * kLongest;
    if (!ordered || bin.count < 0 || bin.count > kMaxSteps - times.count_) return std::nullopt;
    times.add(bin_of(std::sqrt(bin.low_s * bin.high_s)), bin.count);
  }
  return times;
}

std::vector<StepTimes::Bin> StepTimes::bins() const {
  std::vector<Bin> bins;
  bins.reserve(counts_.size());
  for (const auto& [bin, count] : counts_) bins.push_back({low_of(bin), low_of(bin + 1), count});
  return bins;
}

double StepTimes::quantile(double fraction) const {
  const auto wanted = static_cast<int64_t>(std::ceil(fraction * static_cast<double>(count_)));
  int64_t seen = 0;
  for (const auto& [bin, count] : counts_) {
    seen += count;
    if (seen >= wanted) return std::sqrt(low_of(bin) * low_of(bin + 1));
  }
  return low_of(counts_.rbegin()->first + 1);
}

}  // namespace lockstep
