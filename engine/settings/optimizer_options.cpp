#include "engine/settings/optimizer_options.h"

namespace lockstep {

double OptimizerOptions::base_lr(int64_t global_batch) const {
  const auto images = static_cast<double>(global_batch);
  switch (lr_unit) {
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

double OptimizerOptions::base_decay() const {
  return lr_unit == LrUnit::k1024Images ? weight_decay / lr : weight_decay;
}

}  // namespace lockstep
