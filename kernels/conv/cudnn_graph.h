// Convolutions as operation graphs of cuDNN's graph API.
#pragma once

#include "kernels/conv/convolution_problem.h"
#include "kernels/support/cudnn/target.h"

namespace lockstep::kernels::cudnn {

// Ids of a graph's tensors in a variant pack.
enum TensorId : int64_t {
  kIn = 1,
  kWeight,
  kOut,
  kBias,
  kSums,
  kSquareSums,
  kInScale,
  kInShift,
  // Between two operations:
  kScaled,
  kShifted,
  kNormed,
  kUnbiased,
};

// Returns the finalized graph. Errors: CudnnError.
Descriptor operation_graph(const Target& target, const ConvolutionProblem& problem);

}  // namespace lockstep::kernels::cudnn
