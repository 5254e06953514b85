#include "trainers/loop/normalization.h"

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::trainers {
namespace {

kernels::NormalizeImageParams for_channels(const kernels::NormalizeImageParams& params,
                                           const data::Dataset& dataset) {
  const auto channels = static_cast<size_t>(dataset.image_shape().channels);
  if (params.mean.empty() || params.mean.size() == channels) return params;
  if (params.mean.size() == 1) {
    return {.mean = std::vector(channels, params.mean[0]),
            .std = std::vector(channels, params.std[0])};
  }
  throw UsageError(
      fmt::format("--normalize has {} means", params.mean.size()),
      fmt::format(
          "the images of {} have {} channel{}", dataset.name(), channels, channels == 1 ? "" : "s"),
      "--normalize MEAN,STD, which is for every channel");
}

kernels::NormalizeImageParams usual(const data::Dataset& dataset) {
  const std::string name = dataset.name();
  if (name.starts_with("mnist/")) return {.mean = {0.1307F}, .std = {0.3081F}};
  if (name.starts_with("fashion-mnist/")) return {.mean = {0.2860F}, .std = {0.3530F}};
  if (name.starts_with("shapes/")) {
    return {.mean = {0.322F, 0.323F, 0.322F}, .std = {0.208F, 0.207F, 0.207F}};
  }
  const bool like_imagenet = name.starts_with("imagefolder/") ||
                             (name == "synthetic" && dataset.image_shape().channels == 3);
  if (like_imagenet || name.starts_with("cifar10/")) {
    return {.mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}};
  }
  return {};
}

}  // namespace

kernels::NormalizeImageParams normalization(
    const std::optional<kernels::NormalizeImageParams>& asked, const data::Dataset& dataset) {
  return asked ? for_channels(*asked, dataset) : usual(dataset);
}

}  // namespace lockstep::trainers
