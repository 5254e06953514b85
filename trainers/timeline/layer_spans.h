// Records when each op of a network computes, under the name of its layer.
#pragma once

#include <string_view>
#include <unordered_map>

#include "core/autograd.h"
#include "core/timeline.h"
#include "nn/module.h"
#include "trainers/model/layer_names.h"

namespace lockstep::trainers {

// An op's span begins where the one before it ended. On the CPU alone: on a GPU an op is over for
// the host when it is queued. Borrows the timeline and the network. Thread safety: none.
class LayerSpans : public TapeListener {
 public:
  LayerSpans(Timeline& timeline, const nn::Module& model);

  // The listener for a micro-step; it passes on to `next`, which may be null.
  TapeListener* listener(TapeListener* next) {
    next_ = next;
    return this;
  }
  // A forward or backward pass begins, or ends.
  void begin_pass() { last_end_ = Timeline::Clock::now(); }
  void end_pass();

  bool reads_tensors() const override { return next_ != nullptr && next_->reads_tensors(); }
  void on_result(const TapeOp& op, const Tensor& result) override;
  void on_gradient(const TapeOp& op, size_t i, Tensor& gradient) override;

 private:
  std::string_view name_of(const TapeOp& op) const;

  Timeline& timeline_;
  const LayerNames names_;
  std::unordered_map<const void*, std::string_view> layers_;  // by parameter
  TapeListener* next_ = nullptr;
  Timeline::Clock::time_point last_end_;
  Timeline::Span backward_;  // of the op whose gradients arrive
  uint64_t backward_op_ = 0;
};

}  // namespace lockstep::trainers
