#include "engine/settings/training_settings.h"

#include <cmath>

namespace lockstep {

int64_t steps_of(double epochs, int64_t steps_per_epoch) {
  constexpr double kNoise = 1e-6;  // 1.1 epochs of 100 steps are 110, and their product is more
  return static_cast<int64_t>(std::ceil(epochs * static_cast<double>(steps_per_epoch) - kNoise));
}

}  // namespace lockstep
