#include "engine/settings/optimizer_config.h"

#include <cmath>

namespace lockstep {

double OptimizerConfig::base_lr(int64_t global_batch) const {
  const auto images = static_cast<double>(global_batch);
  switch (schedule.lr_unit) {
    case LrUnit::kStep:
      break;
    case LrUnit::k256Images:
      return lr * images / 256;
    case LrUnit::k1024Images:
      // A gradient moves a weight by lr / (1 - momentum) in all, and Nesterov's step adds lr.
      return lr * images / (1024 * (1 + 1 / (1 - momentum)));
  }
  return lr;
}

int64_t steps_of(double epochs, int64_t steps_per_epoch) {
  constexpr double kNoise = 1e-6;  // 1.1 epochs of 100 steps are 110, and their product is more
  return static_cast<int64_t>(std::ceil(epochs * static_cast<double>(steps_per_epoch) - kNoise));
}

double OptimizerConfig::base_decay() const {
  return schedule.lr_unit == LrUnit::k1024Images ? weight_decay / lr : weight_decay;
}

}  // namespace lockstep
