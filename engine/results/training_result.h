// Results of a training: its figures, and where its time went.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "data/loader.h"
#include "engine/results/step_times.h"

namespace lockstep {

struct Evaluation {
  int64_t correct1 = 0;
  int64_t correct5 = 0;
  int64_t total = 0;
  double loss = 0;  // mean cross-entropy per image, in nats

  double acc1() const { return 100.0 * static_cast<double>(correct1) / static_cast<double>(total); }
  double acc5() const { return 100.0 * static_cast<double>(correct5) / static_cast<double>(total); }
};

// Where a rank's time went, from the beginning of a step until its gradients were summed.
struct RankSeconds {
  double own = 0;      // its own work and data
  double exposed = 0;  // held up by communication: waits for peers, and the transfer
  double hidden = 0;   // communication during own work
  data::LoaderSeconds loader{};

  RankSeconds& operator+=(const RankSeconds& other) {
    own += other.own;
    exposed += other.exposed;
    hidden += other.hidden;
    loader += other.loader;
    return *this;
  }
  // Divides the sums of `count` steps or ranks. The loader's stay 0: nobody needs a mean of them.
  RankSeconds mean_over(double count) const {
    return {.own = own / count, .exposed = exposed / count, .hidden = hidden / count};
  }
};

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
  // Times of one bucket on rank 0, in seconds since the step began.
  struct BucketSeconds {
    double ready = 0;  // all its gradients are there
    double start = 0;  // its exchange begins
    double end = 0;    // its sum is there
  };

  std::vector<Rank> ranks;  // by rank
  std::vector<BucketSeconds> buckets;

  // The means over ranks.
  RankSeconds mean_seconds() const {
    RankSeconds sum;
    for (const Rank& rank : ranks) sum += rank.seconds;
    return sum.mean_over(static_cast<double>(std::max<size_t>(1, ranks.size())));
  }
};

struct BestEvaluation : Evaluation {
  int epoch = 0;  // from 0
};

// Steps that changed no weight, because a gradient was not finite.
struct SkippedSteps {
  int64_t count = 0;  // since epoch 0, as TrainingResult::steps
  bool all = false;   // there were steps, and each was skipped
};

struct TrainingResult {
  std::optional<Evaluation> final;  // of the weights at the end; nothing after a signal
  BestEvaluation best;
  int64_t steps = 0;  // since epoch 0, those of earlier processes included
  SkippedSteps skipped;
  int64_t images = 0;                            // trained on in this process, over all ranks
  double training_s = 0;                         // of this process in steps, evaluation left out
  double first_step_s = 0;                       // from process start to the end of its first step
  bool stopped = false;                          // on a signal
  std::optional<int64_t> early_stop_epoch = {};  // the last one, from 0, of --early-stopping
  bool saved = true;                             // the last state; known on rank 0
  ExchangeSummary communication;
  StepTimes step_times;  // of this rank in this process, but for the first step
};

}  // namespace lockstep
