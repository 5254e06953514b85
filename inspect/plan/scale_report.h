// lockstep scale-report: shows how a training scales, from its times on several numbers of GPUs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::trainers {

struct TimedTraining {
  int64_t gpus = 0;
  double seconds = 0;  // of the whole training
};

// Parses "8:20904": GPUs, then seconds. Errors: UsageError for other text, and for a number of GPUs
// that appears twice.
std::vector<TimedTraining> parse_timings(std::span<const std::string> pairs);

// A row for each training, by its number of GPUs. Efficiency and speed-up compare a training with
// that on the fewest GPUs: 1 is a training that is N times as fast on N times the GPUs.
// `images`: of an epoch.
struct ScaleRow {
  int64_t gpus = 0;
  double seconds = 0;
  double images_per_s = 0;
  double speedup = 1;
  double efficiency = 1;
};
std::vector<ScaleRow> scale_rows(std::vector<TimedTraining> trainings,
                                 int64_t images,
                                 double epochs);

// A table of whole lines.
std::string scale_report(std::span<const ScaleRow> rows);

}  // namespace lockstep::trainers
