#include "bench/train/step_clock.h"

namespace lockstep::bench {

void StepClock::mark() {
  if (stream_.device() == Device::kCuda) return marks_.emplace_back().record(stream_.cuda());
  times_.push_back(std::chrono::steady_clock::now());
}

std::vector<double> StepClock::take_seconds() {
  std::vector<double> seconds;
  for (size_t i = 1; i < times_.size(); ++i) {
    seconds.push_back(std::chrono::duration<double>(times_[i] - times_[i - 1]).count());
  }
  if (!marks_.empty()) stream_.synchronize();
  for (size_t i = 1; i < marks_.size(); ++i) {
    seconds.push_back(marks_[i].microseconds_since(marks_[i - 1]) * 1e-6);
  }
  times_.clear();
  marks_.clear();
  return seconds;
}

}  // namespace lockstep::bench
