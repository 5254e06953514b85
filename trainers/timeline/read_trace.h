// Reads a trace file: each step of each rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::trainers {

// A rank's step, in microseconds on rank 0's clock.
struct RankStep {
  double begin = 0;
  double end = 0;
  double summed = 0;    // when its gradients were summed over ranks; 0: the trace does not say
  double loader = 0;    // it waited for images
  double exchange = 0;  // it was held up by the exchange, before `summed`
};

struct TracedStep {
  int64_t number = 0;           // from 1
  std::vector<RankStep> ranks;  // by rank
};

struct TraceContents {
  std::string device;
  double clock_error_us = 0;
  std::vector<TracedStep> steps;  // in their order, those that all ranks took
};

// Reads a trace file, or that of a run directory. Memory: by the steps, not by the file. Errors:
// EnvironmentError for a file that cannot be read, DataError for one that is no trace of Lockstep's
// or has another format.
TraceContents read_trace(const std::filesystem::path& file);

}  // namespace lockstep::trainers
