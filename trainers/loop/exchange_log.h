// The cost of a run's communication, for run.json.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "comm/gradient_reducer.h"
#include "core/communicator.h"
#include "trainers/loop/step_window.h"

namespace lockstep::trainers {

// Each figure is a mean over steps. The first step is left out where there are others, because it
// also sets things up.
struct ExchangeSummary {
  // Figures of one rank.
  struct Rank {
    RankSeconds seconds;
    int64_t moved_bytes = 0;  // Traffic::moved_bytes
    int64_t reduced_bytes = 0;
    int64_t images = 0;  // trained on, in all steps together
  };
  // Seconds of one bucket on rank 0 since the step began.
  struct BucketSeconds {
    double ready = 0;  // all its gradients are there
    double start = 0;  // its exchange begins
    double end = 0;    // its sum is there
  };

  std::vector<Rank> ranks;  // by rank
  std::vector<BucketSeconds> buckets;

  // Over ranks.
  RankSeconds mean_seconds() const;
};

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
