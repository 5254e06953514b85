#include "engine/observe/layer_spans.h"

#include <algorithm>

#include "core/flight_recorder.h"

namespace lockstep {

LayerSpans::LayerSpans(Timeline& timeline, const nn::Module& model)
    : timeline_(timeline), names_(model.named_parameters()) {
  for (const nn::NamedParameter& parameter : model.named_parameters()) {
    const auto layer = std::ranges::find(names_.layers(), layer_of_parameter(parameter.name));
    layers_[parameter.var.identity()] = *layer;
  }
}

void LayerSpans::begin_pass(StepObserver::Pass pass) {
  last_end_ = Timeline::Clock::now();
  Order& order = pass == StepObserver::Pass::kForward ? forward_order_ : backward_order_;
  order.done = 0;
  tell_next(order, {});
}

void LayerSpans::on_result(const TapeOp& op, const Tensor& result) {
  if (next_ != nullptr) next_->on_result(op, result);
  const auto now = Timeline::Clock::now();
  const std::string_view name = name_of(op);
  timeline_.record({.name = name, .detail = op.name, .begin = last_end_, .end = now});
  last_end_ = now;
  record_end(forward_order_, name);
}

void LayerSpans::on_gradient(const TapeOp& op, size_t i, Tensor& gradient) {
  if (next_ != nullptr) next_->on_gradient(op, i, gradient);
  const bool is_new = op.number != backward_op_;
  if (is_new) {
    record_backward();
    backward_ = {.name = name_of(op), .detail = op.name, .begin = last_end_};
    backward_op_ = op.number;
  }
  last_end_ = Timeline::Clock::now();
  if (is_new) record_end(backward_order_, backward_.name);
}

void LayerSpans::end_pass() {
  record_backward();
  if (timeline_.recorder() != nullptr) timeline_.recorder()->end_layers();
}

void LayerSpans::record_backward() {
  if (backward_op_ == 0) return;
  backward_.end = last_end_;
  timeline_.record(backward_);
  backward_op_ = 0;
}

void LayerSpans::record_end(Order& order, std::string_view name) {
  if (timeline_.recorder() == nullptr) return;
  if (order.done == order.names.size()) {
    order.names.push_back(name);
  } else {
    order.names[order.done] = name;
  }
  ++order.done;
  tell_next(order, name);
}

void LayerSpans::tell_next(const Order& order, std::string_view before) {
  if (timeline_.recorder() == nullptr) return;
  const bool is_known = order.done < order.names.size();
  timeline_.recorder()->enter_layer(
      is_known ? order.names[order.done] : std::string_view(), before, last_end_);
}

std::string_view LayerSpans::name_of(const TapeOp& op) const {
  for (const Var& input : op.inputs) {
    const auto layer = layers_.find(input.identity());
    if (layer != layers_.end()) return layer->second;
  }
  return op.name;
}

}  // namespace lockstep
