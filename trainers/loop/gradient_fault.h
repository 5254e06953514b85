// A gradient that overflows, on request.
#pragma once

#include "core/shards.h"
#include "core/tape_listener.h"
#include "trainers/loop/fault.h"
#include "trainers/loop/layer_names.h"

namespace lockstep::trainers {

// Fills a row of each gradient that the loss, or a layer, computes with the fault's value: the
// first image of the first shard that the fault's rank owns, or that shard's leaf. A replay on
// fewer ranks is struck alike. Thread safety: none.
class GradientFault : public TapeListener {
 public:
  // `run_ranks`: of the run that has the fault. Errors: UsageError for a layer that the network
  // does not have.
  GradientFault(const Fault& fault, const nn::Module& model, int64_t run_ranks);

  // The listener for a micro-step of step `step`, from 1: this where it strikes, which passes on to
  // `next`; else `next`.
  TapeListener* listener(int64_t step, const Shards& shards, TapeListener* next);

  void on_result(const TapeOp& op, const Tensor& result) override;
  void on_gradient(const TapeOp& op, size_t i, Tensor& gradient) override;

 private:
  const Fault fault_;
  const LayerNames names_;
  const int64_t run_ranks_;
  TapeListener* next_ = nullptr;
  int64_t shard_ = 0;  // struck, of the local ones
  int64_t image_ = 0;  // its first row
};

}  // namespace lockstep::trainers
