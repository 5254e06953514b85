// Chooses cuDNN's engines for the convolutions of a step, without the GPU.
#pragma once

#include <string>
#include <vector>

#include "inspect/plan/gpu_card.h"
#include "trainers/planner/plan_file.h"
#include "trainers/planner/step_convolutions.h"

namespace lockstep::trainers {

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
