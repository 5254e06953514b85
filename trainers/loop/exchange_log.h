// The cost of a run's communication, for run.json.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "comm/gradient_reducer.h"
#include "core/communicator.h"
#include "trainers/report/training_result.h"

namespace lockstep::trainers {

// A rank's record of its steps.
class ExchangeLog {
 public:
  struct Step {
    comm::BucketTimes::Clock::time_point begin;
    RankSeconds seconds;
    const comm::ExchangeTimes& exchange;
    Traffic traffic;  // of this step
    int64_t images = 0;
  };

  void add(const Step& step);
  // A collective call. The same answer on all ranks but for the buckets, which are this rank's.
  ExchangeSummary summarize(Communicator& ranks) const;

 private:
  int64_t steps_ = 0;
  int64_t images_ = 0;
  ExchangeSummary::Rank sums_;  // of all steps but the first, once there are others
  std::vector<ExchangeSummary::BucketSeconds> buckets_;
};

}  // namespace lockstep::trainers
