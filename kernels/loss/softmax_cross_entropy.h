// Cross-entropy of softmax against class labels, its gradient, and the rank of the target.
//   losses[n] = -sum over c of target[n,c] * log_softmax(logits[n])[c]
//   target[n,c] = (1 - label_smoothing) * [c == labels[n]] + label_smoothing / C
//   target_rank[n] = number of classes above labels[n]: greater logits, and equal ones with a lower
//   index
// For images that mix_images has mixed, with m their partners:
//   target[n,c] = (1 - label_smoothing) * (mix * [c == labels[n]] + (1 - mix) * [c == labels[m]])
//                 + label_smoothing / C
// and target_rank is that of labels[m] if mix < 1/2. A prediction is in the top k when target_rank
// < k. The maximum is subtracted first, so large logits do not overflow. A NaN logit makes its
// image's loss and gradients NaN and its rank C. So does a label out of range on CUDA, where labels
// cannot be checked before the kernels run. The CPU sums over classes in double, CUDA in f32.
// Source: torch.nn.functional.cross_entropy. Spec: tests/reference/softmax_cross_entropy.h
#pragma once

#include "core/shards.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

// Also of binary_cross_entropy (kernels/loss/binary_cross_entropy.h).
struct ClassLossParams {
  float label_smoothing = 0;  // in [0, 1]
  Tensor mix = {};            // (1) f32, in [0, 1]; undefined: 1
  int64_t divide_by = 1;      // an additional divisor of the loss leaves, at least 1
};

struct SoftmaxCrossEntropyArgs {
  const Tensor& logits;  // (N,C) f32, f16 or bf16, C >= 1
  const Tensor& labels;  // (N) i32 in [0, C)
  ClassLossParams params = {};
};
// Shapes: losses (N) f32; target_rank (N) i32; loss_leaves (local shards) f32: sum of the shard's
// losses, in image order and double, divided by shards.step_images * divide_by; 0 for an empty
// shard. Errors: ShapeError, DtypeError, DeviceError; on the CPU DataError naming the first label
// out of range.
using SoftmaxCrossEntropyForward = void(Stream& stream,
                                        const Shards& shards,
                                        const SoftmaxCrossEntropyArgs& args,
                                        Tensor& losses,
                                        Tensor& target_rank,
                                        Tensor& loss_leaves);
//   grad_logits[n,c] = (softmax(logits[n])[c] - target[n,c]) * grad_loss[shard of n]
//                      / (step_images * divide_by)
// Shapes: grad_loss (local shards) f32; grad_logits (N,C) like logits, overwritten:
// each f32 value rounded to its type.
using SoftmaxCrossEntropyBackward = void(Stream& stream,
                                         const Shards& shards,
                                         const SoftmaxCrossEntropyArgs& args,
                                         const Tensor& grad_loss,
                                         Tensor& grad_logits);

LS_DECLARE_OP(SoftmaxCrossEntropyForward, softmax_cross_entropy_forward)
LS_DECLARE_OP(SoftmaxCrossEntropyBackward, softmax_cross_entropy_backward)

}  // namespace lockstep::kernels
