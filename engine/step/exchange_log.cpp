#include "engine/step/exchange_log.h"

#include <algorithm>

#include "comm/gather.h"

namespace lockstep {

void ExchangeLog::add(const Step& step) {
  if (++steps_ == 2) {
    sums_ = {};
    buckets_.clear();
  }
  sums_.seconds += step.seconds;
  sums_.moved_bytes += step.traffic.moved_bytes;
  sums_.reduced_bytes += step.traffic.reduced_bytes;
  images_ += step.images;
  buckets_.resize(step.exchange.buckets.size());
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const comm::BucketTimes& times = step.exchange.buckets[i];
    const auto since_begin = [&](comm::BucketTimes::Clock::time_point at) {
      return std::chrono::duration<double>(at - step.begin).count();
    };
    buckets_[i].ready += since_begin(times.ready);
    buckets_[i].start += since_begin(times.start);
    buckets_[i].end += since_begin(times.end);
  }
}

ExchangeSummary ExchangeLog::summarize(Communicator& ranks) const {
  const int64_t steps = std::max<int64_t>(1, steps_ - 1);
  const auto count = static_cast<double>(steps);
  const ExchangeSummary::Rank mine{.seconds = sums_.seconds.mean_over(count),
                                   .moved_bytes = sums_.moved_bytes / steps,
                                   .reduced_bytes = sums_.reduced_bytes / steps,
                                   .images = images_};
  ExchangeSummary summary{.ranks = comm::gather_value(ranks, mine), .buckets = buckets_};
  for (ExchangeSummary::BucketSeconds& bucket : summary.buckets) {
    bucket.ready /= count;
    bucket.start /= count;
    bucket.end /= count;
  }
  return summary;
}

}  // namespace lockstep
