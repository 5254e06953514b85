#include "engine/settings/precision_config.h"

namespace lockstep {

Precision PrecisionConfig::network() const {
  switch (level) {
    case OptLevel::kO0:
      return {};
    case OptLevel::kO1:
      return {.autocast = dtype};
    default:
      return {.images = dtype};
  }
}

std::string_view name_of(OptLevel level) {
  return word_of(kOptLevelNames, level);
}

PrecisionConfig at_level(OptLevel level) {
  const bool in_f32 = level != OptLevel::kO3;
  PrecisionConfig config;
  config.level = level;
  config.keep_batchnorm_fp32 = config.master_weights = in_f32;
  return config;
}

std::optional<LossScaling> usual_loss_scaling(OptLevel level, Dtype half) {
  const bool scales = level == OptLevel::kO1 || level == OptLevel::kO2;
  return scales && half == Dtype::kF16 ? std::optional(LossScaling{}) : std::nullopt;
}

}  // namespace lockstep
