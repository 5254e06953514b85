#include <utility>

#include "kernels/loss/binary_cross_entropy.h"
#include "kernels/loss/softmax_cross_entropy.h"
#include "nn/functional.h"

namespace lockstep::nn {
namespace {

// Records a loss. forward(result, leaves) computes the losses, the target ranks and the loss per
// shard; backward(stream, gradient of the leaves, grad_logits) the gradient.
template <class Forward, class Backward>
CrossEntropy record_loss(const char* op, const Var& logits, Forward forward, Backward backward) {
  const Device device = logits.stream().device();
  const Shape images{logits.shape()[0]};
  CrossEntropy result{.loss = {},
                      .losses = Tensor::empty(images, Dtype::kF32, device),
                      .target_rank = Tensor::empty(images, Dtype::kI32, device)};
  Tensor leaves = Tensor::empty({logits.shards().local()}, Dtype::kF32, device);
  forward(result, leaves);
  result.loss =
      record(op,
             leaves,
             {logits},
             [backward = std::move(backward)](Stream& s, const Tensor& grad_loss, Grads& grads) {
               backward(s, grad_loss, grads.overwrite(0));
             });
  return result;
}

}  // namespace

CrossEntropy softmax_cross_entropy(const Var& logits,
                                   const Tensor& labels,
                                   const kernels::ClassLossParams& params) {
  const Tensor& scores = logits.value();
  const std::shared_ptr<const Batch>& batch = logits.shared_batch();
  return record_loss(
      "softmax_cross_entropy",
      logits,
      [&](CrossEntropy& figures, Tensor& leaves) {
        kernels::softmax_cross_entropy_forward(logits.stream(),
                                               batch->shards,
                                               {scores, labels, params},
                                               figures.losses,
                                               figures.target_rank,
                                               leaves);
      },
      [=](Stream& s, const Tensor& grad_loss, Tensor& grad_logits) {
        kernels::softmax_cross_entropy_backward(
            s, batch->shards, {scores, labels, params}, grad_loss, grad_logits);
      });
}

CrossEntropy binary_cross_entropy(const Var& logits,
                                  const Tensor& labels,
                                  const kernels::ClassLossParams& params,
                                  std::optional<float> target_threshold) {
  const Tensor& scores = logits.value();
  const std::shared_ptr<const Batch>& batch = logits.shared_batch();
  return record_loss(
      "binary_cross_entropy",
      logits,
      [&](CrossEntropy& figures, Tensor& leaves) {
        kernels::binary_cross_entropy_forward(logits.stream(),
                                              batch->shards,
                                              {scores, labels, params, target_threshold},
                                              figures.losses,
                                              figures.target_rank,
                                              leaves);
      },
      [=](Stream& s, const Tensor& grad_loss, Tensor& grad_logits) {
        kernels::binary_cross_entropy_backward(
            s, batch->shards, {scores, labels, params, target_threshold}, grad_loss, grad_logits);
      });
}

}  // namespace lockstep::nn
