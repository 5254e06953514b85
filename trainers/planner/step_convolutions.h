// The convolutions of a step, for those who choose cuDNN's engines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/conv/convolution_problem.h"
#include "trainers/planner/dry_step.h"

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

}  // namespace lockstep::trainers
