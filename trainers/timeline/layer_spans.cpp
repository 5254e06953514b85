#include "trainers/timeline/layer_spans.h"

#include <algorithm>

namespace lockstep::trainers {

LayerSpans::LayerSpans(Timeline& timeline, const nn::Module& model)
    : timeline_(timeline), names_(model.named_parameters()) {
  for (const nn::NamedParameter& parameter : model.named_parameters()) {
    const auto layer = std::ranges::find(names_.layers(), layer_of_parameter(parameter.name));
    layers_[parameter.var.identity()] = *layer;
  }
}

void LayerSpans::on_result(const TapeOp& op, const Tensor& result) {
  if (next_ != nullptr) next_->on_result(op, result);
  const auto now = Timeline::Clock::now();
  timeline_.record({.name = name_of(op), .detail = op.name, .begin = last_end_, .end = now});
  last_end_ = now;
}

void LayerSpans::on_gradient(const TapeOp& op, size_t i, Tensor& gradient) {
  if (next_ != nullptr) next_->on_gradient(op, i, gradient);
  if (op.number != backward_op_) {
    end_pass();
    backward_ = {.name = name_of(op), .detail = op.name, .begin = last_end_};
    backward_op_ = op.number;
  }
  last_end_ = Timeline::Clock::now();
}

void LayerSpans::end_pass() {
  if (backward_op_ == 0) return;
  backward_.end = last_end_;
  timeline_.record(backward_);
  backward_op_ = 0;
}

std::string_view LayerSpans::name_of(const TapeOp& op) const {
  for (const Var& input : op.inputs) {
    const auto layer = layers_.find(input.identity());
    if (layer != layers_.end()) return layer->second;
  }
  return op.name;
}

}  // namespace lockstep::trainers
