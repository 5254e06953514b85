// The logits of an evaluation, over all ranks.
#pragma once

#include <string>

#include "core/communicator.h"
#include "core/safetensors.h"
#include "core/tensor.h"
#include "data/batch_plan.h"

namespace lockstep {

// Collects one rank's rows while an evaluation runs.
class LogitCollector {
 public:
  // Adds the next batch, on the CPU. Shapes: logits (N,C) f32, f16 or bf16; labels (N) i32, or
  // targets (N,K) f32.
  void add(const Tensor& logits, const Tensor& labels);
  // Returns, on rank 0, `logits` (images, C) f32 and `labels` (images) i64, or `targets` (images,
  // K) f32, in the order of the
  // data set and the same on any number of ranks; nothing on the other ranks. A collective call.
  // Requires: each batch of the plan was added.
  Safetensors over_ranks(const data::EvaluationPlan& plan, Communicator& ranks) const;

 private:
  int64_t classes_ = 0, target_size_ = 0;
  std::string logits_, labels_;  // bytes of f32; of i64, or f32
};

}  // namespace lockstep
