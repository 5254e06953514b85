// Reports what training on a GPU lacks on this machine, and what to type.
#pragma once

#include <optional>
#include <vector>

#include "trainers/machine/cuda_facts.h"
#include "trainers/machine/finding.h"

namespace lockstep::trainers {

// Reports a GPU that training would not use and whose user may not know it: CUDA does not start,
// its driver is too old or missing, the mask hides all GPUs, or this build has no CUDA. Returns
// nothing on a machine without a GPU, and where an empty mask says that no GPU is wanted.
std::optional<Finding> unused_gpu(const CudaFacts& facts);

// Reports that cuDNN is missing, so that Lockstep's own kernels compute convolutions. `toolkit`:
// "13.0". Returns nothing where cuDNN is installed.
std::optional<Finding> no_cudnn(const LibraryFacts& cudnn, const std::string& toolkit);

// Returns the findings on the driver, each GPU, the toolkit and the libraries.
std::vector<Finding> cuda_findings(const CudaFacts& facts);

}  // namespace lockstep::trainers
