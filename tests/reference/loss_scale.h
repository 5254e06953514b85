// Specification of kernels/optim/loss_scale.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace lockstep::reference {

struct LossScaler {
  // The rule.
  bool dynamic;
  double growth_factor, backoff_factor;
  int64_t growth_interval;
  double min_scale;
  // The state.
  double scale;
  int64_t good_steps_in_a_row = 0, bad_steps_in_a_row = 0, applied = 0, skipped = 0;

  void end_step(bool found_inf) {
    if (found_inf) {
      ++skipped;
      ++bad_steps_in_a_row;
      if (!dynamic) return;
      good_steps_in_a_row = 0;
      scale = std::fmax(static_cast<float>(scale * backoff_factor), min_scale);
      return;
    }
    ++applied;
    bad_steps_in_a_row = 0;
    if (!dynamic || ++good_steps_in_a_row < growth_interval) return;
    good_steps_in_a_row = 0;
    const double grown = scale * growth_factor;
    if (grown <= std::numeric_limits<float>::max()) scale = static_cast<float>(grown);
  }
};

inline bool all_finite(std::span<const double> values) {
  for (const double value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace lockstep::reference
