#include "kernels/loss/binary_targets.h"
#include "kernels/loss/class_loss_cpu.h"

namespace lockstep::kernels::LS_CPU {
namespace {

BinaryTargets targets_of(const BinaryTargetRule& rule, int64_t classes, const Target& image) {
  return binary_targets(rule, classes, static_cast<float>(image.weight));
}

}  // namespace

void binary_cross_entropy_forward(Stream& stream,
                                  const Shards& shards,
                                  const BinaryCrossEntropyArgs& args,
                                  Tensor& losses,
                                  Tensor& target_rank,
                                  Tensor& loss_leaves) {
  const int64_t classes = args.logits.shape()[1];
  const BinaryTargetRule rule = target_rule_of(args);
  const auto loss_of = [=](auto x, const Target& image) {
    const BinaryTargets targets = targets_of(rule, classes, image);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const double logit = x[c];
      const double target = target_of_class(targets, c, image.label, image.other);
      sum += (1 - target) * logit - std::min(logit, 0.0) + std::log1p(std::exp(-std::abs(logit)));
    }
    return static_cast<float>(sum / static_cast<double>(classes));
  };
  class_loss_forward(stream, shards, args, {losses, target_rank, loss_leaves}, loss_of);
}

void binary_cross_entropy_backward(Stream& stream,
                                   const Shards& shards,
                                   const BinaryCrossEntropyArgs& args,
                                   const Tensor& grad_loss,
                                   Tensor& grad_logits) {
  const int64_t classes = args.logits.shape()[1];
  const BinaryTargetRule rule = target_rule_of(args);
  const auto divisor = static_cast<double>(shards.step_images * args.params.divide_by * classes);
  const auto write = [=]<class T>(Logits<T> x, const Target& image, double scale, T* grad) {
    const BinaryTargets targets = targets_of(rule, classes, image);
    for (int64_t c = 0; c < classes; ++c) {
      const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(x[c])));
      const double target = target_of_class(targets, c, image.label, image.other);
      grad[c] = T(static_cast<float>((sigmoid - target) * scale));
    }
  };
  class_loss_backward(stream, shards, args, {grad_loss, grad_logits, divisor}, write);
}

}  // namespace lockstep::kernels::LS_CPU
