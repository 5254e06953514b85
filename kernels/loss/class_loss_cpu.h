// Code that the classification losses share on the CPU.
// Included by *_cpu.cpp files alone: see cpu_loops.h.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/image/mix_images.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {

// One image's logits, as floats.
template <class T>
class Logits {
 public:
  explicit Logits(const T* first) : first_(first) {}
  float operator[](int64_t c) const { return static_cast<float>(first_[c]); }

 private:
  const T* first_;
};

// The two labels of an image and the weight of the first.
struct Target {
  int32_t label, other;
  double weight;

  int32_t heavier() const { return weight < 0.5 ? other : label; }
};

inline Target target_of(const Shards& shards, const int32_t* labels, const Tensor& mix, int64_t n) {
  if (!mix.defined()) return {labels[n], labels[n], 1};
  const auto end = std::ranges::upper_bound(shards.offsets, n);
  return {labels[n], labels[partner_of(end[-1], end[0], n)], *mix.data<float>()};
}

template <class T>
int32_t rank_of(Logits<T> x, int64_t classes, int32_t label) {
  int32_t above = 0;
  for (int64_t c = 0; c < classes; ++c) {
    if (std::isnan(x[c])) return static_cast<int32_t>(classes);
    above += x[c] > x[label] || (x[c] == x[label] && c < label);
  }
  return above;
}

inline void write_loss_leaves(const Shards& shards,
                              int64_t divide_by,
                              const Tensor& losses,
                              Tensor& loss_leaves) {
  const float* loss = losses.data<float>();
  float* leaf = loss_leaves.data<float>();
  const auto divisor = static_cast<double>(shards.step_images * divide_by);
  for (int64_t k = 0; k < shards.local(); ++k) {
    double sum = 0;
    for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) sum += loss[n];
    leaf[k] = shards.count(k) == 0 ? 0 : static_cast<float>(sum / divisor);
  }
}

struct LossResults {
  Tensor& losses;
  Tensor& target_rank;
  Tensor& loss_leaves;
};

// Writes losses, target ranks and loss leaves. loss_of(x, target) computes an image's loss from its
// logits.
template <class Args, class Loss>
void class_loss_forward(Stream& stream,
                        const Shards& shards,
                        const Args& args,
                        const LossResults& results,
                        Loss loss_of) {
  const Tensor& logits = args.logits;
  const int64_t classes = logits.shape()[1];
  const int32_t* label = args.labels.template data<int32_t>();
  float* loss = results.losses.data<float>();
  int32_t* rank = results.target_rank.data<int32_t>();
  dispatch_float(logits.dtype(), [&]<class T>() {
    const T* first = logits.data<T>();
    for_images(stream, shards, [=, &shards, &args](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const Logits<T> x(first + n * classes);
        const Target target = target_of(shards, label, args.params.mix, n);
        loss[n] = loss_of(x, target);
        rank[n] = rank_of(x, classes, target.heavier());
      }
    });
  });
  write_loss_leaves(shards, args.params.divide_by, results.losses, results.loss_leaves);
}

struct LossGradients {
  const Tensor& grad_loss;
  Tensor& grad_logits;
  double divisor;  // the sum of the losses is divided by it
};

// Calls write(x, target, scale, grad) for each image, which must set `grad` to the gradient of the
// image's loss with respect to its logits x, times `scale`.
template <class Args, class Write>
void class_loss_backward(Stream& stream,
                         const Shards& shards,
                         const Args& args,
                         const LossGradients& gradients,
                         Write write) {
  const Tensor& logits = args.logits;
  const int64_t classes = logits.shape()[1];
  const int32_t* label = args.labels.template data<int32_t>();
  const float* leaf_grad = gradients.grad_loss.data<float>();
  dispatch_float(logits.dtype(), [&]<class T>() {
    stream.fork(shards.local(), [&](int64_t k, int) {
      const double scale = leaf_grad[k] / gradients.divisor;
      for (int64_t n = shards.begin(k); n < shards.begin(k + 1); ++n) {
        const Logits<T> x(logits.data<T>() + n * classes);
        const Target target = target_of(shards, label, args.params.mix, n);
        write(x, target, scale, gradients.grad_logits.data<T>() + n * classes);
      }
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
