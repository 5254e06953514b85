// The output of lockstep plan.
#pragma once

#include <string>
#include <vector>

#include "trainers/planner/convolution_plans.h"
#include "trainers/planner/dry_step.h"
#include "trainers/planner/gpu_card.h"
#include "trainers/planner/step_prediction.h"

namespace lockstep::trainers {

struct TrainingPlan {
  GpuCard card;
  PrecisionConfig precision;
  int64_t ranks = 1;
  DryStep step = {};       // of one rank
  DryStep half_step = {};  // of half as many images: what grows with the batch
  std::vector<PlannedConvolution> convolutions = {};
  std::string no_engines = {};  // why none were chosen; empty: they were
  PredictionConstants constants = {};

  int64_t workspace_bytes() const;  // of the largest convolution
  int64_t needed_bytes() const;     // peak, workspace, and what CUDA and libraries keep
  int64_t bytes_per_image() const;
  int64_t largest_batch() const;  // that fits; 0 for none
};

// Each of whole lines.
std::string memory_text(const TrainingPlan& plan);
std::string operations_text(const TrainingPlan& plan);
std::string layers_text(const TrainingPlan& plan);
std::string convolutions_text(const TrainingPlan& plan);
std::string speed_text(const TrainingPlan& plan);
std::string scaling_text(const TrainingPlan& plan);

}  // namespace lockstep::trainers
