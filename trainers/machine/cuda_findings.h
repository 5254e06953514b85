// Judges what is there of CUDA: what training on a GPU lacks here, and what to type.
#pragma once

#include <optional>
#include <vector>

#include "trainers/machine/cuda_facts.h"
#include "trainers/machine/finding.h"

namespace lockstep::trainers {

// A GPU that training on the CPU would leave aside, where the user may not know it: CUDA does not
// start, its driver is too old or missing, the mask hides all, or this build has no CUDA. Nothing
// on a machine without a GPU, and where an empty mask says that none is wanted.
std::optional<Finding> unused_gpu(const CudaFacts& facts);

// Without cuDNN convolutions are kernels of our own. `toolkit`: "13.0". Nothing where it is there.
std::optional<Finding> no_cudnn(const LibraryFacts& cudnn, const std::string& toolkit);

// Driver, each GPU, toolkit and libraries.
std::vector<Finding> cuda_findings(const CudaFacts& facts);

}  // namespace lockstep::trainers
