// The report of bench_train, in the words of Horovod's synthetic benchmark and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/train/options.h"
#include "engine/step/step_figures.h"
#include "trainers/config/run_request.h"

namespace lockstep::bench {

struct SyntheticReport {
  SyntheticOptions options;
  trainers::ResolvedRun run;
  trainers::ModelOptions network;
  int64_t parameters = 0;
  double first_step_s = 0;  // from the start of rank 0's process to the end of its first step

  // Seconds of each measured iteration, by rank 0's clock.
  std::vector<double> iteration_s = {};
  std::vector<double> step_s = {};
  std::vector<RankSeconds> seconds = {};  // by rank, sums over steps
  double loss = 0;                        // of the last step
  std::vector<double> peak_rss_mib = {};  // by rank

  // Images/s of one rank, in each iteration.
  std::vector<double> images_per_s() const;
};

// Each of whole lines.
std::string opening_text(const SyntheticReport& report);
std::string iteration_text(const SyntheticReport& report, size_t iteration);
std::string closing_text(const SyntheticReport& report);

// One object on one line.
std::string json_text(const SyntheticReport& report);

}  // namespace lockstep::bench
