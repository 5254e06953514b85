// `lockstep plan`: predicts what a run on a GPU would need and do, without the GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::trainers {

struct PlanOptions {
  std::string gpu = "h200";
  int64_t ranks = 8;
  bool layers = false;                     // each layer's cost too
  bool json = false;                       // one JSON object instead of the tables
  std::string plan_file = {};              // engines by time; empty: all by the rule
  std::vector<std::string> training = {};  // the trainers' flags, as typed
};

// Returns the report. The default without a preset is ResNet-50 with 256 images per rank at O2.
// Errors: UsageError for an unknown card, and for flags that the trainers refuse or a plan ignores;
// EnvironmentError for an unusable plan file.
std::string plan_training(const PlanOptions& options);

}  // namespace lockstep::trainers
