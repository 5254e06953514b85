#include "kernels/loss/softmax_cross_entropy.h"
#include "nn/functional.h"

namespace lockstep::nn {

CrossEntropy softmax_cross_entropy(const Var& logits,
                                   const Tensor& labels,
                                   const kernels::SoftmaxCrossEntropyParams& params) {
  Stream& stream = logits.stream();
  const Tensor& scores = logits.value();
  const Shape images{scores.shape()[0]};
  CrossEntropy result;
  result.losses = Tensor::empty(images, Dtype::kF32, stream.device());
  result.target_rank = Tensor::empty(images, Dtype::kI32, stream.device());
  Tensor leaves = Tensor::empty({logits.shards().local()}, Dtype::kF32, stream.device());
  kernels::softmax_cross_entropy_forward(stream,
                                         logits.shards(),
                                         {.logits = scores, .labels = labels, .params = params},
                                         result.losses,
                                         result.target_rank,
                                         leaves);

  const std::shared_ptr<const Batch>& batch = logits.shared_batch();
  result.loss = record("softmax_cross_entropy",
                       leaves,
                       {logits},
                       [=](Stream& s, const Tensor& grad_loss, Grads& grads) {
                         kernels::softmax_cross_entropy_backward(
                             s,
                             batch->shards,
                             {.logits = scores, .labels = labels, .params = params},
                             grad_loss,
                             grads.overwrite(0));
                       });
  return result;
}

}  // namespace lockstep::nn
