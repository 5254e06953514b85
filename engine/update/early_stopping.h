// Decides when a training has not improved for long enough.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "engine/settings/early_stopping_config.h"

namespace lockstep {

// A loss above best - delta is worse than the best. Any other loss, an equal one too, becomes the
// best and resets the count of worse epochs. Source: EarlyStopping of tutorial 000.
class EarlyStopping {
 public:
  struct State {
    double best = std::numeric_limits<double>::infinity();
    int64_t worse_epochs = 0;  // in a row

    bool operator==(const State& other) const = default;
  };

  explicit EarlyStopping(const EarlyStoppingConfig& config) : config_(config) {}

  bool watches_validation() const { return config_.patience > 0; }
  // Adds an epoch's test loss; NaN is worse than any other.
  void end_epoch(double loss);
  bool stopped() const { return watches_validation() && state_.worse_epochs >= config_.patience; }

  // The state that a resumed run needs; absent where nothing is watched.
  std::optional<State> state() const {
    return watches_validation() ? std::optional(state_) : std::nullopt;
  }
  void restore(const std::optional<State>& state) { state_ = state.value_or(state_); }

 private:
  EarlyStoppingConfig config_;
  State state_;
};

}  // namespace lockstep
