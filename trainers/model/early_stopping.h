// Decides when a training has not improved for long enough.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "trainers/config/run_request.h"

namespace lockstep::trainers {

// A loss above best - delta is worse than the best. Any other loss, an equal one too, becomes the
// best and resets the count of worse epochs. Source: EarlyStopping of tutorial 000.
class EarlyStopping {
 public:
  explicit EarlyStopping(const EarlyStoppingConfig& config) : config_(config) {}

  bool watches_validation() const { return config_.patience > 0; }
  // Adds an epoch's test loss; NaN is worse than any other.
  void end_epoch(double loss);
  bool stopped() const { return watches_validation() && worse_epochs_ >= config_.patience; }

  // The state that a resumed run needs beside the flags, as JSON; empty where nothing is watched.
  std::string state() const;
  // Nothing is restored from "", the state of a run that watched nothing. Errors: CheckpointError
  // for other text that state() does not write.
  void restore(std::string_view state);

 private:
  EarlyStoppingConfig config_;
  double best_ = std::numeric_limits<double>::infinity();
  int64_t worse_epochs_ = 0;  // in a row
};

}  // namespace lockstep::trainers
