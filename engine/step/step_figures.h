// Figures of the steps since the ranks last exchanged them, and of the current epoch.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "core/communicator.h"
#include "core/shards.h"
#include "engine/results/metrics.h"
#include "engine/results/training_result.h"
#include "engine/update/training_position.h"
#include "nn/functional.h"

namespace lockstep {

struct WindowTotals {
  std::vector<float>
      losses;  // of each step, over all ranks; the bits do not depend on their number
  int64_t correct1 = 0;
  int64_t correct5 = 0;
  int64_t images = 0;
  bool stop = false;               // some rank was asked to stop
  double seconds = 0;              // since the last exchange, mean of the ranks
  int64_t skipped_photos = 0;      // sum of what ranks gave
  std::vector<RankSeconds> ranks;  // by rank, sums over the steps
};

// How many images have the target first, or among the first five logits.
struct HitCounts {
  int64_t correct1 = 0;
  int64_t correct5 = 0;
  int64_t images = 0;

  // Adds an image by its target's rank, from 0.
  void add(int32_t target_rank) {
    correct1 += target_rank < 1 ? 1 : 0;
    correct5 += target_rank < 5 ? 1 : 0;
    ++images;
  }
  HitCounts& operator+=(const HitCounts& other) {
    correct1 += other.correct1;
    correct5 += other.correct5;
    images += other.images;
    return *this;
  }
};

struct SlowestRank {
  int rank = 0;
  double skew = 0;  // by how much its own time exceeds the others' mean, as a fraction of that
};

// Returns the rank with the largest own time: the one that the others wait for.
SlowestRank slowest_rank(std::span<const RankSeconds> ranks);

// The loader's work on the rank that waited the most for it.
struct LoaderStall {
  double share = 0;            // of the time of that rank's steps that it waited, as a fraction
  const char* busy_with = "";  // "disk", "decode", "augment"
};
LoaderStall loader_stall(std::span<const RankSeconds> ranks);

// Collects the figures of a rank's steps and sums them over ranks on request, so that a step itself
// needs no message for them. On CUDA, a step does not wait for its figures: they are copied to
// page-locked memory.
class StepWindow {
 public:
  void add(const nn::CrossEntropy& result);  // of a micro-step; it is read in exchange()
  // Makes a step of the micro-steps added since the last call. A shard's leaf is the tree over its
  // micro-steps; shards and ranks continue it (core/tree.h).
  void end_step(const RankSeconds& seconds);
  // Sums over ranks and starts a new window. All ranks must call it after the same number of steps.
  WindowTotals exchange(Communicator& ranks, bool stop, int64_t skipped_photos = 0);

 private:
  struct MicroStep {
    Tensor losses;        // of shards
    Tensor target_ranks;  // of images; undefined with a loss of the caller's
    int64_t images = 0;
  };

  // Returns memory for one more micro-step, that of the last window or new.
  MicroStep& next_pinned(const MicroStep& sizes);
  HitCounts count() const;
  float loss_of(std::span<const MicroStep> step) const;

  std::vector<MicroStep> micro_steps_;
  std::vector<size_t> step_ends_;  // in micro_steps_
  std::vector<MicroStep> pinned_;  // of the largest micro-steps so far
  Stream* stream_ = nullptr;       // on CUDA, which the figures come from
  RankSeconds seconds_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

// The figures of the current epoch.
class EpochProgress {
 public:
  // `number` counts from 0. The clock starts. Each step but the epoch's last has `step_images`.
  // `before`: the sums of an earlier process that did part of the epoch.
  EpochProgress(int number, int64_t steps, int64_t step_images, const EpochSums& before = {})
      : number_(number), steps_(steps), step_images_(step_images), before_(before), sums_(before) {}

  int number() const { return number_; }
  int64_t steps() const { return steps_; }
  int64_t done() const { return sums_.steps; }
  const EpochSums& sums() const { return sums_; }  // up to the last update(), except for steps
  // The images of this process alone.
  int64_t images() const { return sums_.images - before_.images; }
  double seconds() const;  // since the clock started
  // Means over the images up to the last update(). Requires: there are some.
  double loss() const;
  double acc1() const;  // percent
  double acc5() const;

  // Adds a step's time, and the part of it that was spent waiting for data.
  void end_step(double step_s, double data_s);
  // Means over the epoch up to the last update(), with the rate of its last step. Speed and times
  // are those of this process, 0 where it took no step. Requires: there are images.
  StepMetrics averages(double lr) const;
  // Adds the steps since the last call and returns the figures of a log line: of the steps since
  // begin_line(). `steps_left`: of the run.
  StepMetrics update(const WindowTotals& totals, int64_t steps_left, double lr);
  // Call this after a line, and after a checkpoint: a run that goes on from it has the same lines.
  void begin_line() { line_ = {.start_s = last_update_s_}; }

 private:
  using Clock = std::chrono::steady_clock;

  const int number_;
  const int64_t steps_;
  const int64_t step_images_;
  const EpochSums before_;
  const Clock::time_point start_ = Clock::now();
  EpochSums sums_;
  double last_update_s_ = 0;
  struct Line {
    double start_s = 0;
    int64_t steps = 0, correct1 = 0, correct5 = 0, images = 0;
    std::vector<RankSeconds> ranks = {};  // by rank, sums over the steps
  };
  Line line_;
  double step_s_ = 0, data_s_ = 0, data_sum_s_ = 0;
};

}  // namespace lockstep
