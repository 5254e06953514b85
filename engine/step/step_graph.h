// Runs training steps as one recorded graph on the device.
#pragma once

#include <memory>

#include "core/cuda/graph.h"
#include "core/cuda/memory.h"
#include "core/function_ref.h"
#include "nn/functional.h"

namespace lockstep {

// The first step runs directly, the second on images at fixed addresses, and the third is recorded.
// From then on the device gets each step in one call. Steps whose images are divided differently,
// such as an epoch's last, run directly. When the size of images changes, recording starts over.
// All steps share one pool of memory, in the stream's order: the next step overwrites what a step
// leaves there. Borrows the stream.
class StepGraph {
 public:
  // Queues all the work of a step on these images and labels; returns its figures. mix: of
  // kernels::ClassLossParams, may be undefined.
  using Step = nn::CrossEntropy(const Var& images, const Tensor& labels, const Tensor& mix);

  // Unless `wanted`, and off CUDA, every step runs directly. pool_bytes: the bytes that steps are
  // expected to allocate; 0: not known. Off CUDA there is no pool.
  StepGraph(Stream& stream, bool wanted, size_t pool_bytes = 0);
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;
  ~StepGraph();

  // The figures are valid for the work that the stream is given before the next call. Errors: also
  // CudaError where `step` waits for the device.
  nn::CrossEntropy run(const Var& images,
                       const Tensor& labels,
                       const Tensor& mix,
                       FunctionRef<Step> step);

  // Drops the recorded graph, because the next steps do other work.
  void forget();

  // While the result lives, the calling thread allocates tensors in the steps' memory, which is
  // free between two steps. They must be freed before the next step. Off CUDA it changes nothing.
  cuda::MemoryPool::Use use_memory() const;
  // Whether the last step repeated the graph, without a call of `step`.
  bool repeated() const { return repeated_; }

 private:
  struct Recorded;

  Stream& stream_;
  std::unique_ptr<cuda::MemoryPool> pool_;  // null off CUDA
  std::unique_ptr<Recorded> recorded_;      // null: every step runs directly
  bool repeated_ = false;
};

}  // namespace lockstep
