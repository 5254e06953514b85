#include "trainers/loop/gradient_fault.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/transfer.h"

namespace lockstep::trainers {
namespace {

template <class T>
void fill(Tensor& tensor, double value) {
  std::ranges::fill(tensor.span<T>(), T(static_cast<float>(value)));
}

void fill_with(double value, Tensor tensor) {
  Tensor values = Tensor::empty(tensor.shape(), tensor.dtype());
  switch (tensor.dtype()) {
    case Dtype::kF16:
      fill<Half>(values, value);
      break;
    case Dtype::kBF16:
      fill<BFloat16>(values, value);
      break;
    default:
      fill<float>(values, value);
  }
  overwrite(values, tensor);
}

}  // namespace

GradientFault::GradientFault(const Fault& fault, const nn::Module& model, int64_t run_ranks)
    : fault_(fault), names_(model.named_parameters()), run_ranks_(run_ranks) {
  const std::vector<std::string>& layers = names_.layers();
  if (fault.layer.empty() || std::ranges::find(layers, fault.layer) != layers.end()) return;
  throw UsageError(fmt::format("LOCKSTEP_FAULT strikes layer {}", fault.layer),
                   "the network has no such layer",
                   fmt::format("one of {}", fmt::join(layers, ", ")));
}

TapeListener* GradientFault::listener(int64_t step, const Shards& shards, TapeListener* next) {
  const bool strikes = step >= fault_.number && step < fault_.number + fault_.count;
  const int64_t shard = fault_.rank * shards.total / run_ranks_ - shards.first;
  if (!strikes || shards.micro_step > 0 || shard < 0 || shard >= shards.local()) return next;
  if (shards.count(shard) == 0) return next;
  next_ = next;
  shard_ = shard;
  image_ = shards.begin(shard);
  return this;
}

void GradientFault::on_result(const TapeOp& op, const Tensor& result) {
  if (next_ != nullptr) next_->on_result(op, result);
}

void GradientFault::on_gradient(const TapeOp& op, size_t i, Tensor& gradient) {
  const bool struck = fault_.layer.empty() ? op.name == "softmax_cross_entropy"
                                           : names_.layer_of(op) == fault_.layer;
  if (struck) {
    const bool leaves = !names_.parameter(op.inputs[i]).empty();
    fill_with(fault_.value, gradient.slice(leaves ? shard_ : image_, 1));
  }
  if (next_ != nullptr) next_->on_gradient(op, i, gradient);
}

}  // namespace lockstep::trainers
