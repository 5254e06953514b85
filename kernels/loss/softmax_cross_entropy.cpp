#include "kernels/loss/softmax_cross_entropy.h"

#include "kernels/loss/loss_checks.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

// Operations per logit in a pass: an exponential, a sum and a comparison.
constexpr int64_t kFlopsPerLogit = 3;

}  // namespace

void softmax_cross_entropy_forward(Stream& stream,
                                   const Shards& shards,
                                   const SoftmaxCrossEntropyArgs& args,
                                   Tensor& losses,
                                   Tensor& target_rank,
                                   Tensor& loss_leaves) {
  const OpCheck check("softmax_cross_entropy_forward", stream);
  const Tensor &logits = args.logits, &labels = args.labels;
  check_loss_inputs(check, shards, logits, labels, args.params);
  check.like("losses", losses, labels.shape(), Dtype::kF32);
  check.like("target_rank", target_rank, labels.shape(), Dtype::kI32);
  check.like("loss_leaves", loss_leaves, {shards.local()}, Dtype::kF32);
  if (check.dry(kFlopsPerLogit * logits.numel(),
                bytes_of(logits, labels, losses, target_rank, loss_leaves))) {
    return;
  }
  check_labels("softmax_cross_entropy", labels, logits.shape()[1]);
  LS_DISPATCH(softmax_cross_entropy_forward,
              (stream, shards, args, losses, target_rank, loss_leaves))
}

void softmax_cross_entropy_backward(Stream& stream,
                                    const Shards& shards,
                                    const SoftmaxCrossEntropyArgs& args,
                                    const Tensor& grad_loss,
                                    Tensor& grad_logits) {
  const OpCheck check("softmax_cross_entropy_backward", stream);
  const Tensor &logits = args.logits, &labels = args.labels;
  check_loss_inputs(check, shards, logits, labels, args.params);
  check.like("grad_loss", grad_loss, {shards.local()}, Dtype::kF32);
  check.like("grad_logits", grad_logits, logits.shape(), logits.dtype());
  if (check.dry(kFlopsPerLogit * logits.numel(),
                bytes_of(logits, labels, grad_loss, grad_logits))) {
    return;
  }
  check_labels("softmax_cross_entropy", labels, logits.shape()[1]);
  LS_DISPATCH(softmax_cross_entropy_backward, (stream, shards, args, grad_loss, grad_logits))
}

}  // namespace lockstep::kernels
