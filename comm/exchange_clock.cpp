#include "comm/exchange_clock.h"

#include <algorithm>
#include <utility>

#include "core/timeline.h"

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
  const Clock::time_point now = Clock::now();
  clock_.step_.exposed_s += Seconds(now - since_).count();
  constexpr auto kShort = std::chrono::microseconds(1);  // nothing was there to do
  if (clock_.timeline_ == nullptr || now - since_ < kShort) return;
  clock_.timeline_->record({.name = kExchangeSpan, .begin = since_, .end = now});
}

void ExchangeClock::end(size_t bucket) {
  BucketTimes& times = step_.buckets[bucket];
  times.end = Clock::now();
  if (timeline_ == nullptr) return;
  const TimelineLane lane{TimelineLane::Kind::kBucket, static_cast<int32_t>(bucket)};
  timeline_->record({.lane = lane,
                     .name = kBucketSpan,
                     .detail = last_gradients_[bucket],
                     .number = static_cast<int64_t>(bucket),
                     .begin = times.ready,
                     .end = times.end});
  timeline_->record({.lane = lane, .name = "sum", .begin = times.start, .end = times.end});
}

ExchangeTimes ExchangeClock::take() {
  ExchangeTimes done = std::move(step_);
  done.hidden_s = std::max(0.0, seconds_under_way(done.buckets) - done.exposed_s);
  step_ = {.buckets = std::vector<BucketTimes>(done.buckets.size())};
  return done;
}

}  // namespace lockstep::comm
