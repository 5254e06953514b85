// Which of cuDNN's engines would compute the convolutions of a step, without the card.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/convolution_problem.h"
#include "trainers/tool/dry_step.h"

namespace lockstep::trainers {

struct PlannedConvolution {
  kernels::ConvolutionProblem problem;
  int64_t calls = 0;             // of a step
  int64_t flops = 0, bytes = 0;  // of one call
  std::string choice = {};       // the engine; "own kernel" where cuDNN is not asked
  int64_t workspace_bytes = 0;   // copies of operands included
};

// The distinct calls of a step, in the order in which they come first; no engine is chosen yet.
std::vector<PlannedConvolution> convolutions_of(const DryStep& step);

// Chooses engines. Errors: EnvironmentError in a build without cuDNN, where cuDNN cannot be loaded,
// and for a convolution without a plan.
void choose_engines(const std::string& cudnn_properties, std::vector<PlannedConvolution>& calls);

// Of the GPU that is here: a file of this is what find_gpu() reads. Errors: EnvironmentError
// without a GPU or cuDNN.
std::string describe_present_gpu();

}  // namespace lockstep::trainers
