// Records when each op of a network computes, under the name of its layer. Tells a flight recorder
// the layer that is computing now, predicted from the last pass of the same kind.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/autograd.h"
#include "core/timeline.h"
#include "engine/observe/layer_names.h"
#include "engine/step/step_observer.h"
#include "nn/module.h"

namespace lockstep {

// An op's span begins where the previous one ended. For the CPU only: on a GPU, the host has
// finished an op once it is queued. Borrows the timeline and the network. Thread safety: none.
class LayerSpans : public TapeListener {
 public:
  LayerSpans(Timeline& timeline, const nn::Module& model);

  // Returns the listener for a micro-step, which forwards to `next`; `next` may be null.
  TapeListener* listener(TapeListener* next) {
    next_ = next;
    return this;
  }
  // A forward or backward pass begins, or a backward pass ends.
  void begin_pass(StepObserver::Pass pass);
  void end_pass();

  bool reads_tensors() const override { return next_ != nullptr && next_->reads_tensors(); }
  void on_result(const TapeOp& op, const Tensor& result) override;
  void on_gradient(const TapeOp& op, size_t i, Tensor& gradient) override;

 private:
  // The layers of a pass in their order.
  struct Order {
    std::vector<std::string_view> names;
    size_t done = 0;
  };

  std::string_view name_of(const TapeOp& op) const;
  void record_backward();
  void record_end(Order& order, std::string_view name);
  // Records that an op is over, which begins the next one.
  void tell_next(const Order& order, std::string_view before);

  Timeline& timeline_;
  const LayerNames names_;
  std::unordered_map<const void*, std::string_view> layers_;  // by parameter
  TapeListener* next_ = nullptr;
  Timeline::Clock::time_point last_end_;
  Timeline::Span backward_;  // of the op whose gradients arrive
  uint64_t backward_op_ = 0;
  Order forward_order_;
  Order backward_order_;
};

}  // namespace lockstep
