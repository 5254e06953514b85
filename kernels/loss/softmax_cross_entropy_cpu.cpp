#include <cmath>

#include "kernels/loss/class_loss_cpu.h"
#include "kernels/loss/softmax_cross_entropy.h"

namespace lockstep::kernels::LS_CPU {
namespace {

// log(sum over c of exp(x[c])) in two parts, so that neither overflows. NaN when an x is.
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
  const Tensor& logits = args.logits;
  const int64_t classes = logits.shape()[1];
  const double smoothing = args.params.label_smoothing;
  const int32_t* label = args.labels.data<int32_t>();
  float* loss = losses.data<float>();
  int32_t* rank = target_rank.data<int32_t>();
  dispatch_float(logits.dtype(), [&]<class T>() {
    const T* first = logits.data<T>();
    for_images(stream, shards, [=, &shards, &args](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const Logits<T> x(first + n * classes);
        const Target target = target_of(shards, label, args.params.mix, n);
        loss[n] = loss_of(x, classes, target, smoothing);
        rank[n] = rank_of(x, classes, target.heavier());
      }
    });
  });
  write_loss_leaves(shards, args.params.divide_by, losses, loss_leaves);
}

void softmax_cross_entropy_backward(Stream& stream,
                                    const Shards& shards,
                                    const SoftmaxCrossEntropyArgs& args,
                                    const Tensor& grad_loss,
                                    Tensor& grad_logits) {
  const Tensor& logits = args.logits;
  const int64_t classes = logits.shape()[1];
  const double smoothing = args.params.label_smoothing;
  const double off_target = smoothing / static_cast<double>(classes);
  const auto divisor = static_cast<double>(shards.step_images * args.params.divide_by);
  const int32_t* label = args.labels.data<int32_t>();
  const float* leaf_grad = grad_loss.data<float>();
  dispatch_float(logits.dtype(), [&]<class T>() {
    stream.fork(shards.local(), [&](int64_t k, int) {
      const double scale = leaf_grad[k] / divisor;
      for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) {
        const Logits<T> x(logits.data<T>() + n * classes);
        T* grad = grad_logits.data<T>() + n * classes;
        const LogSumExp log_sum_exp(x, classes);
        const Target of_image = target_of(shards, label, args.params.mix, n);
        const double own = (1 - smoothing) * of_image.weight;
        const double others = (1 - smoothing) * (1 - of_image.weight);
        for (int64_t c = 0; c < classes; ++c) {
          const double target =
              off_target + (c == of_image.label ? own : 0) + (c == of_image.other ? others : 0);
          const double softmax = std::exp(log_sum_exp.log_softmax(x[c]));
          grad[c] = T(static_cast<float>((softmax - target) * scale));
        }
      }
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
