// Chooses cuDNN's engines for the convolutions of a step, without the GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/conv/convolution_problem.h"
#include "trainers/planner/dry_step.h"
#include "trainers/planner/gpu_card.h"
#include "trainers/planner/plan_file.h"

namespace lockstep::trainers {

struct PlannedConvolution {
  kernels::ConvolutionProblem problem;
  int64_t calls = 0;                    // of a step
  int64_t flops = 0, bytes = 0;         // of one call
  std::string choice = {};              // the engine; "own kernel" where cuDNN is not asked
  int64_t workspace_bytes = 0;          // copies of operands included
  double microseconds = 0;              // of a call, as its plan file has it; 0: the rule's engine
  std::vector<std::string> fused = {};  // forms that the plan file puts in its place, each a line
};

// Returns the distinct calls of a step, in order of their first appearance; no engine is chosen
// yet.
std::vector<PlannedConvolution> convolutions_of(const DryStep& step);

// Reads the engines in a plan file for this card. Errors: EnvironmentError for an unusable file,
// and without cuDNN.
PlannedEngines read_engines(const std::string& plan_file, const GpuCard& card);

// Chooses engines: those of a plan file, where it has them. Errors: EnvironmentError in a build
// without cuDNN, where cuDNN cannot be loaded, and for a convolution without a plan or without the
// planned engine.
void choose_engines(const std::string& cudnn_properties,
                    std::vector<PlannedConvolution>& calls,
                    const PlannedEngines& planned = {});

// Describes this machine's GPU, for a file that find_gpu() reads. Errors: EnvironmentError without
// a GPU or cuDNN.
std::string describe_present_gpu();

}  // namespace lockstep::trainers
