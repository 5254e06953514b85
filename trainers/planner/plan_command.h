// `lockstep plan`: what a run on a GPU would need and do, without the GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::trainers {

struct PlanOptions {
  std::string arch = "resnet50";
  int64_t batch_size = 256;  // a rank
  std::string gpu = "h200";
  int64_t ranks = 8;
  std::string opt_level = "O2";
  std::string dtype = "f16";
  bool cifar_stem = false;
  bool layers = false;                     // each layer's cost too
  std::string plan_file = {};              // engines by time; empty: all by the rule
  std::vector<std::string> training = {};  // the trainers' --ema, --mixup and --larc, as typed
};

// The report. Errors: UsageError for a network, level, type or card that there is not, and for
// flags that the trainers refuse or a plan does not look at; EnvironmentError for a plan file of no
// use.
std::string plan_training(const PlanOptions& options);

}  // namespace lockstep::trainers
