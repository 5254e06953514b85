#include "comm/exchange_clock.h"

#include <algorithm>
#include <utility>

namespace lockstep::comm {
namespace {

using Seconds = std::chrono::duration<double>;

}  // namespace

double seconds_under_way(std::span<const BucketTimes> buckets) {
  Seconds sum{};
  BucketTimes::Clock::time_point covered = BucketTimes::Clock::time_point::min();
  for (const BucketTimes& bucket : buckets) {
    const auto begin = std::max(bucket.start, covered);
    if (bucket.end <= begin) continue;
    sum += bucket.end - begin;
    covered = bucket.end;
  }
  return sum.count();
}

ExchangeClock::Exposed::~Exposed() {
  clock_.step_.exposed_s += Seconds(Clock::now() - since_).count();
}

ExchangeTimes ExchangeClock::take() {
  ExchangeTimes done = std::move(step_);
  done.hidden_s = std::max(0.0, seconds_under_way(done.buckets) - done.exposed_s);
  step_ = {.buckets = std::vector<BucketTimes>(done.buckets.size())};
  return done;
}

}  // namespace lockstep::comm
