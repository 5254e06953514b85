// A run in three sentences: what it reached, what bound its speed, what its bits are good for.
#pragma once

#include <string>
#include <vector>

#include "trainers/page/viewed_run.h"

namespace lockstep::trainers {

enum class RunBound : uint8_t {
  kUnknown,        // too few figures, or none that stands out
  kLoader,         // steps waited for images
  kSlowRank,       // the others waited for one rank
  kCommunication,  // all ranks waited for the exchange itself
  kSharedCores,    // ranks have fewer cores than threads, so they wait for cores
  kCompute,        // nothing else took a notable share
};

struct SpeedVerdict {
  RunBound bound = RunBound::kUnknown;
  double share = 0;    // of a step's time; kSlowRank: by how much it is slower
  int64_t rank = 0;    // kSlowRank
  int64_t cores = 0;   // kSharedCores: of the host
  std::string busy{};  // kLoader: with "disk", "decode" or "augment"
};

// Returns kUnknown where fewer than five lines were logged or fifty steps taken.
SpeedVerdict speed_verdict(const ViewedRun& run);

// Three sentences in plain text.
std::vector<std::string> verdict(const ViewedRun& run);

// "exit code 6: the loss or the ranks diverged"
std::string exit_text(ExitCode code);
// "1, 2, 4, 8"
std::string same_bits_list(const RunPlan& plan);

}  // namespace lockstep::trainers
