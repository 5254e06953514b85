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
  const Tensor& logits = args.logits;
  const int64_t classes = logits.shape()[1];
  const BinaryTargetRule rule = target_rule_of(args);
  const int32_t* label = args.labels.data<int32_t>();
  float* loss = losses.data<float>();
  int32_t* rank = target_rank.data<int32_t>();
  dispatch_float(logits.dtype(), [&]<class T>() {
    const T* first = logits.data<T>();
    for_images(stream, shards, [=, &shards, &args](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const Logits<T> x(first + n * classes);
        const Target target = target_of(shards, label, args.params.mix, n);
        const BinaryTargets targets = targets_of(rule, classes, target);
        double sum = 0;
        for (int64_t c = 0; c < classes; ++c) {
          const double logit = x[c];
          sum +=
              (1 - static_cast<double>(target_of_class(targets, c, target.label, target.other))) *
                  logit -
              std::min(logit, 0.0) + std::log1p(std::exp(-std::abs(logit)));
        }
        loss[n] = static_cast<float>(sum / static_cast<double>(classes));
        rank[n] = rank_of(x, classes, target.heavier());
      }
    });
  });
  write_loss_leaves(shards, args.params.divide_by, losses, loss_leaves);
}

void binary_cross_entropy_backward(Stream& stream,
                                   const Shards& shards,
                                   const BinaryCrossEntropyArgs& args,
                                   const Tensor& grad_loss,
                                   Tensor& grad_logits) {
  const Tensor& logits = args.logits;
  const int64_t classes = logits.shape()[1];
  const BinaryTargetRule rule = target_rule_of(args);
  const auto divisor = static_cast<double>(shards.step_images * args.params.divide_by * classes);
  const int32_t* label = args.labels.data<int32_t>();
  const float* leaf_grad = grad_loss.data<float>();
  dispatch_float(logits.dtype(), [&]<class T>() {
    stream.fork(shards.local(), [&](int64_t k, int) {
      const double scale = leaf_grad[k] / divisor;
      for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) {
        const Logits<T> x(logits.data<T>() + n * classes);
        T* grad = grad_logits.data<T>() + n * classes;
        const Target of_image = target_of(shards, label, args.params.mix, n);
        const BinaryTargets targets = targets_of(rule, classes, of_image);
        for (int64_t c = 0; c < classes; ++c) {
          const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(x[c])));
          const double target = target_of_class(targets, c, of_image.label, of_image.other);
          grad[c] = T(static_cast<float>((sigmoid - target) * scale));
        }
      }
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
