// Cross-entropy of a separate sigmoid for each class, its gradient, and the rank of the label.
//   losses[n] = mean over c of (1 - t) * x - min(x, 0) + log(1 + exp(-|x|)),
//   where x = logits[n,c], t = target[n,c]
// The target and target_rank are softmax_cross_entropy's (kernels/loss/softmax_cross_entropy.h).
// With a threshold, targets above it are 1 and all others 0; they are compared in f32 on every
// device, where mix * a + (1 - mix) * b is computed in f32 from on = 1 - s + s/C and off = s/C. A
// NaN logit makes its image's loss and its own gradient NaN and the rank C; an infinite logit may
// give NaN, too, as in PyTorch. On CUDA a label out of range makes its whole image NaN.
// The CPU computes in double, CUDA in f32 with sums in double. Source:
// torch.nn.functional.binary_cross_entropy_with_logits; timm.loss.BinaryCrossEntropy with its mean
// over classes. Spec: tests/reference/binary_cross_entropy.h
#pragma once

#include <optional>

#include "kernels/loss/softmax_cross_entropy.h"

namespace lockstep::kernels {

struct BinaryCrossEntropyArgs {
  const Tensor& logits;  // (N,C) f32, f16 or bf16, C >= 1
  const Tensor& labels;  // (N) i32 in [0, C)
  ClassLossParams params = {};
  std::optional<float> target_threshold = {};
};
// Shapes: as softmax_cross_entropy_forward. Errors: ShapeError, DtypeError, DeviceError; on the CPU
// DataError naming the first label out of range.
using BinaryCrossEntropyForward = void(Stream& stream,
                                       const Shards& shards,
                                       const BinaryCrossEntropyArgs& args,
                                       Tensor& losses,
                                       Tensor& target_rank,
                                       Tensor& loss_leaves);
//   grad_logits[n,c] = (sigmoid(x) - t) / C * grad_loss[shard of n] / (step_images * divide_by)
// Shapes: as softmax_cross_entropy_backward.
using BinaryCrossEntropyBackward = void(Stream& stream,
                                        const Shards& shards,
                                        const BinaryCrossEntropyArgs& args,
                                        const Tensor& grad_loss,
                                        Tensor& grad_logits);

LS_DECLARE_OP(BinaryCrossEntropyForward, binary_cross_entropy_forward)
LS_DECLARE_OP(BinaryCrossEntropyBackward, binary_cross_entropy_backward)

}  // namespace lockstep::kernels
