#include <cmath>

#include "kernels/loss/class_loss_cpu.h"
#include "kernels/loss/softmax_cross_entropy.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// log(sum over c of exp(x[c])) in two parts, so that neither overflows; NaN if an x is NaN.
struct LogSumExp {
  double max, log_sum;

  template <class T>
  LogSumExp(Logits<T> x, int64_t classes) : max(x[0]), log_sum(0) {
    for (int64_t c = 1; c < classes; ++c) {
      if (x[c] > max) max = x[c];
    }
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - max);
    log_sum = std::log(sum);
  }
  double log_softmax(float x) const { return x - max - log_sum; }
};

template <class T>
float loss_of(Logits<T> x, int64_t classes, const Target& target, double smoothing) {
  const LogSumExp log_sum_exp(x, classes);
  const auto of = [&](int32_t label) { return -log_sum_exp.log_softmax(x[label]); };
  double of_label = 0;  // and no 0 * inf of a class without weight
  if (target.weight != 0) of_label += target.weight * of(target.label);
  if (target.weight != 1) of_label += (1 - target.weight) * of(target.other);
  if (smoothing == 0) return static_cast<float>(of_label);
  double of_all = 0;
  for (int64_t c = 0; c < classes; ++c) of_all -= log_sum_exp.log_softmax(x[c]);
  return static_cast<float>((1 - smoothing) * of_label +
                            smoothing / static_cast<double>(classes) * of_all);
}

}  // namespace

void softmax_cross_entropy_forward(Stream& stream,
                                   const Shards& shards,
                                   const SoftmaxCrossEntropyArgs& args,
                                   Tensor& losses,
                                   Tensor& target_rank,
                                   Tensor& loss_leaves) {
  const int64_t classes = args.logits.shape()[1];
  const double smoothing = args.params.label_smoothing;
  class_loss_forward(
      stream, shards, args, {losses, target_rank, loss_leaves}, [=](auto x, const Target& target) {
        return loss_of(x, classes, target, smoothing);
      });
}

void softmax_cross_entropy_backward(Stream& stream,
                                    const Shards& shards,
                                    const SoftmaxCrossEntropyArgs& args,
                                    const Tensor& grad_loss,
                                    Tensor& grad_logits) {
  const int64_t classes = args.logits.shape()[1];
  const double smoothing = args.params.label_smoothing;
  const double off_target = smoothing / static_cast<double>(classes);
  const auto divisor = static_cast<double>(shards.step_images * args.params.divide_by);
  const auto write = [=]<class T>(Logits<T> x, const Target& of_image, double scale, T* grad) {
    const LogSumExp log_sum_exp(x, classes);
    const double own = (1 - smoothing) * of_image.weight;
    const double others = (1 - smoothing) * (1 - of_image.weight);
    for (int64_t c = 0; c < classes; ++c) {
      const double target =
          off_target + (c == of_image.label ? own : 0) + (c == of_image.other ? others : 0);
      const double softmax = std::exp(log_sum_exp.log_softmax(x[c]));
      grad[c] = T(static_cast<float>((softmax - target) * scale));
    }
  };
  class_loss_backward(stream, shards, args, {grad_loss, grad_logits, divisor}, write);
}

}  // namespace lockstep::kernels::LS_CPU
