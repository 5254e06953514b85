// Judges the machine's CUDA: what training on a GPU lacks here, and what to type.
#pragma once

#include <optional>
#include <vector>

#include "trainers/machine/cuda_facts.h"
#include "trainers/machine/finding.h"

namespace lockstep::trainers {

// A GPU that training would not use, where the user may not know it: CUDA does not start, its
// driver is too old or missing, the mask hides all GPUs, or this build has no CUDA. Nothing on a
// machine without a GPU, or where an empty mask says that no GPU is wanted.
std::optional<Finding> unused_gpu(const CudaFacts& facts);

// Without cuDNN, Lockstep's own kernels compute convolutions. `toolkit`: "13.0". Nothing where
// cuDNN is installed.
std::optional<Finding> no_cudnn(const LibraryFacts& cudnn, const std::string& toolkit);

// Driver, each GPU, toolkit and libraries.
std::vector<Finding> cuda_findings(const CudaFacts& facts);

}  // namespace lockstep::trainers
