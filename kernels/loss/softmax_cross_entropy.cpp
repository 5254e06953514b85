#include "kernels/loss/softmax_cross_entropy.h"

#include <fmt/core.h>

#include "kernels/support/dispatch.h"

namespace lockstep::kernels {
namespace {

void check_inputs(const OpCheck& check, const Shards& shards, const SoftmaxCrossEntropyArgs& args) {
  const Tensor& logits = args.logits;
  const SoftmaxCrossEntropyParams& params = args.params;
  check.rank("logits", logits, 2);
  check.floating("logits", logits);
  const int64_t images = logits.shape()[0];
  check.require(logits.shape()[1] >= 1, "at least one class");
  check.require(params.label_smoothing >= 0 && params.label_smoothing <= 1,
                "label_smoothing in [0, 1]");
  check.require(params.divide_by >= 1, "divide_by >= 1");
  check.covers(shards, images);
  check.require(images == 0 || shards.step_images >= 1, "shards.step_images >= 1");
  check.like("labels", args.labels, {images}, Dtype::kI32);
  if (params.mix.defined()) check.like("mix", params.mix, {1}, Dtype::kF32);
}

// On the CPU: the labels of a CUDA stream may not be there yet.
void check_labels(const Tensor& labels, int64_t classes) {
  if (labels.device() != Device::kCpu) return;
  const int32_t* label = labels.data<int32_t>();
  for (int64_t n = 0; n < labels.numel(); ++n) {
    if (label[n] >= 0 && label[n] < classes) continue;
    throw DataError(
        fmt::format("[softmax_cross_entropy] label {} of image {} is out of range", label[n], n),
        fmt::format("there are {} logits an image, so labels are 0 to {}", classes, classes - 1),
        "give the model as many outputs as the data set has classes");
  }
}

// Of one pass over the logits: an exponential, a sum and a comparison each.
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
  check_inputs(check, shards, args);
  check.like("losses", losses, labels.shape(), Dtype::kF32);
  check.like("target_rank", target_rank, labels.shape(), Dtype::kI32);
  check.like("loss_leaves", loss_leaves, {shards.local()}, Dtype::kF32);
  if (check.dry(kFlopsPerLogit * logits.numel(),
                bytes_of(logits, labels, losses, target_rank, loss_leaves))) {
    return;
  }
  check_labels(labels, logits.shape()[1]);
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
  check_inputs(check, shards, args);
  check.like("grad_loss", grad_loss, {shards.local()}, Dtype::kF32);
  check.like("grad_logits", grad_logits, logits.shape(), logits.dtype());
  if (check.dry(kFlopsPerLogit * logits.numel(),
                bytes_of(logits, labels, grad_loss, grad_logits))) {
    return;
  }
  check_labels(labels, logits.shape()[1]);
  LS_DISPATCH(softmax_cross_entropy_backward, (stream, shards, args, grad_loss, grad_logits))
}

}  // namespace lockstep::kernels
