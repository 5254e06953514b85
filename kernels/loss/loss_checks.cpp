#include "kernels/loss/loss_checks.h"

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::kernels {

void check_loss_inputs(const OpCheck& check,
                       const Shards& shards,
                       const Tensor& logits,
                       const Tensor& labels,
                       const ClassLossParams& params) {
  check.rank("logits", logits, 2);
  check.floating("logits", logits);
  const int64_t images = logits.shape()[0];
  check.require(logits.shape()[1] >= 1, "at least one class");
  check.require(params.label_smoothing >= 0 && params.label_smoothing <= 1,
                "label_smoothing in [0, 1]");
  check.require(params.divide_by >= 1, "divide_by >= 1");
  check.covers(shards, images);
  check.require(images == 0 || shards.step_images >= 1, "shards.step_images >= 1");
  check.like("labels", labels, {images}, Dtype::kI32);
  if (params.mix.defined()) check.like("mix", params.mix, {1}, Dtype::kF32);
}

void check_labels(const char* op, const Tensor& labels, int64_t classes) {
  if (labels.device() != Device::kCpu) return;
  const int32_t* label = labels.data<int32_t>();
  for (int64_t n = 0; n < labels.numel(); ++n) {
    if (label[n] >= 0 && label[n] < classes) continue;
    throw DataError(
        fmt::format("[{}] label {} of image {} is out of range", op, label[n], n),
        fmt::format("there are {} logits per image, so labels are 0 to {}", classes, classes - 1),
        "give the model as many outputs as the data set has classes");
  }
}

}  // namespace lockstep::kernels
