#include "trainers/loop/batch_norm_check.h"

#include <algorithm>
#include <memory>

#include <fmt/core.h>

#include "core/error.h"
#include "data/batch_plan.h"
#include "data/distributed_sampler.h"
#include "nn/functional.h"

namespace lockstep::trainers {
namespace {

// Fewest images that a batch-norm group gets in a micro-step of this run.
int64_t smallest_group(const BatchDivision& batch,
                       const std::optional<int64_t>& max_steps,
                       int64_t dataset_images) {
  const int64_t replicas = batch.bn_groups * batch.micro_steps;
  const int64_t full = batch.images / replicas;
  const int64_t per_epoch =
      data::samples_per_replica({.size = dataset_images, .replicas = replicas});
  const int64_t steps = (per_epoch + full - 1) / full;
  const bool reaches_last_step = max_steps.value_or(steps) >= steps;
  return reaches_last_step ? per_epoch - (steps - 1) * full : full;
}

// By a forward pass on the dry device, where ops check their arguments and compute nothing.
bool trains_on_one_image(const ModelOptions& options) {
  Mt19937 rng(0);
  const std::unique_ptr<nn::Module> model = make_model(options, nn::Init{rng, Device::kDry});
  Stream stream(Device::kDry);
  const auto& [channels, height, width] = options.image;
  const Tensor image = Tensor::empty({1, channels, height, width}, Dtype::kF32, Device::kDry);
  try {
    model->forward(Var(image, nn::make_batch(stream, Shards::single(1))));
  } catch (const ShapeError&) {
    return false;
  }
  return true;
}

}  // namespace

void check_batch_norm(const BatchDivision& batch,
                      const std::optional<int64_t>& max_steps,
                      const ModelOptions& model,
                      int64_t dataset_images) {
  if (smallest_group(batch, max_steps, dataset_images) > 1 || trains_on_one_image(model)) return;
  const int64_t replicas = batch.bn_groups * batch.micro_steps;
  throw UsageError(
      fmt::format("a step leaves one image to a batch-norm group, too few for {}", model.arch),
      fmt::format(
          "{} images in steps of {}, dealt to {} group{}: the smallest part is 1 image, and "
          "the network's last maps are one pixel, so a variance would be of one value",
          dataset_images,
          batch.images,
          replicas,
          replicas == 1 ? "" : "s"),
      "another -b or --global-batch-size, or fewer --bn-groups (--sync-bn: one)");
}

}  // namespace lockstep::trainers
