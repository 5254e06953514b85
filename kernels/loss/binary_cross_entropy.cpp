#include "kernels/loss/binary_cross_entropy.h"

#include <cmath>

#include "kernels/loss/loss_checks.h"
#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

// Operations per logit in a pass: an exponential, a logarithm or quotient, products and sums.
constexpr int64_t kFlopsPerTarget = 6;

void check_binary_inputs(const OpCheck& check,
                         const Shards& shards,
                         const BinaryCrossEntropyArgs& args) {
  check_loss_inputs(check, shards, args.logits, args.labels, args.params);
  check.require(!std::isnan(args.target_threshold.value_or(0)), "a target_threshold");
}

}  // namespace

void binary_cross_entropy_forward(Stream& stream,
                                  const Shards& shards,
                                  const BinaryCrossEntropyArgs& args,
                                  Tensor& losses,
                                  Tensor& target_rank,
                                  Tensor& loss_leaves) {
  const OpCheck check("binary_cross_entropy_forward", stream);
  const Tensor &logits = args.logits, &labels = args.labels;
  check_binary_inputs(check, shards, args);
  check.like("losses", losses, labels.shape(), Dtype::kF32);
  check.like("target_rank", target_rank, labels.shape(), Dtype::kI32);
  check.like("loss_leaves", loss_leaves, {shards.local()}, Dtype::kF32);
  if (check.dry(kFlopsPerTarget * logits.numel(),
                bytes_of(logits, labels, losses, target_rank, loss_leaves))) {
    return;
  }
  check_labels("binary_cross_entropy", labels, logits.shape()[1]);
  LS_DISPATCH(binary_cross_entropy_forward,
              (stream, shards, args, losses, target_rank, loss_leaves))
}

void binary_cross_entropy_backward(Stream& stream,
                                   const Shards& shards,
                                   const BinaryCrossEntropyArgs& args,
                                   const Tensor& grad_loss,
                                   Tensor& grad_logits) {
  const OpCheck check("binary_cross_entropy_backward", stream);
  const Tensor &logits = args.logits, &labels = args.labels;
  check_binary_inputs(check, shards, args);
  check.like("grad_loss", grad_loss, {shards.local()}, Dtype::kF32);
  check.like("grad_logits", grad_logits, logits.shape(), logits.dtype());
  if (check.dry(kFlopsPerTarget * logits.numel(),
                bytes_of(logits, labels, grad_loss, grad_logits))) {
    return;
  }
  check_labels("binary_cross_entropy", labels, logits.shape()[1]);
  LS_DISPATCH(binary_cross_entropy_backward, (stream, shards, args, grad_loss, grad_logits))
}

}  // namespace lockstep::kernels
