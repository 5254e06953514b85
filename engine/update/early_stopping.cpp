#include "engine/update/early_stopping.h"

namespace lockstep {

void EarlyStopping::end_epoch(double loss) {
  if (loss <= state_.best - config_.delta) {
    state_ = {.best = loss};
  } else {
    ++state_.worse_epochs;
  }
}

}  // namespace lockstep
