#include "trainers/loop/normalization.h"

namespace lockstep::trainers {

kernels::NormalizeImageParams normalization(const RunConfig& config, const data::Dataset& dataset) {
  if (!config.standardize) return {};
  const std::string name = dataset.name();
  if (name.starts_with("mnist/")) return {.mean = {0.1307F}, .std = {0.3081F}};
  if (name.starts_with("fashion-mnist/")) return {.mean = {0.2860F}, .std = {0.3530F}};
  return {};
}

}  // namespace lockstep::trainers
