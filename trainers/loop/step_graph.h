// Training steps as one recorded piece of work for the device.
#pragma once

#include <memory>

#include "core/cuda/graph.h"
#include "core/cuda/memory.h"
#include "core/function_ref.h"
#include "nn/functional.h"

namespace lockstep::trainers {

// The first step runs as it is, the second on images at addresses of their own, the third is
// recorded; from then on the device gets each step in one call. Steps whose images are cut
// otherwise, such as an epoch's last, run as they are; where images get another size, recording
// starts over. All steps have one pool of memory, in the stream's order: what one leaves there the
// next one overwrites. Borrows the stream.
class StepGraph {
 public:
  // Gives the stream all the work of a step on these images and labels; returns its figures. mix:
  // of kernels::SoftmaxCrossEntropyParams, may be undefined.
  using Step = nn::CrossEntropy(const Var& images, const Tensor& labels, const Tensor& mix);

  // Unless `wanted`, or off CUDA, every step runs as it is. pool_bytes: what steps are expected to
  // make; 0: not known. Off CUDA there is no pool.
  StepGraph(Stream& stream, bool wanted, size_t pool_bytes = 0);
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;
  ~StepGraph();

  // The figures are valid for what the stream is given before the next call. Errors: also CudaError
  // where `step` waits for the device.
  nn::CrossEntropy run(const Var& images,
                       const Tensor& labels,
                       const Tensor& mix,
                       FunctionRef<Step> step);

  // The next steps are other work: what was recorded is not repeated.
  void forget();

  // While it lives, the calling thread's tensors are in the steps' memory, which is free between
  // two steps. They must end before the next one. It changes nothing off CUDA.
  cuda::MemoryPool::Use use_memory() const;
  // The last step was one call; `step` did not run.
  bool repeated() const { return repeated_; }

 private:
  struct Recorded;

  Stream& stream_;
  std::unique_ptr<cuda::MemoryPool> pool_;  // null off CUDA
  std::unique_ptr<Recorded> recorded_;      // null: every step runs as it is
  bool repeated_ = false;
};

}  // namespace lockstep::trainers
