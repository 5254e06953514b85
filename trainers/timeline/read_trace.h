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

// The kinds of work in a step, one for each span.
enum class StepWork : uint8_t {
  kStep,    // the whole of it
  kLoader,  // waits for images
  kForward,
  kBackward,
  kSums,      // waits until gradients are summed
  kExchange,  // held up by communication
  kUpdate,
  kBucket,     // of gradients, from the last one to their sum
  kBucketSum,  // of a bucket, while it is summed
};
struct StepSpan {
  StepWork work = StepWork::kStep;
  double begin = 0, end = 0;  // in microseconds
  int64_t bucket = 0;         // of kBucket and kBucketSum
};

// A typical step: the median one by rank 0's time.
struct TypicalStep {
  int64_t number = 0;  // from 1
  // By rank, sorted by begin, in time since the step began on the first rank that began it. The
  // span of the step itself comes first.
  std::vector<std::vector<StepSpan>> ranks;
};

struct TraceContents {
  std::string device;
  double clock_error_us = 0;
  std::vector<TracedStep> steps;  // in their order, those that all ranks took
  TypicalStep typical{};          // without ranks where there is no step
};

// Reads a trace file, or that of a run directory. Memory grows with the steps, not with the file.
// Errors: EnvironmentError for a file that cannot be read; DataError for one that is no trace of
// Lockstep's or has another format.
TraceContents read_trace(const std::filesystem::path& file);

}  // namespace lockstep::trainers
