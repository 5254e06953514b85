// When a training has not improved for long enough.
#pragma once

#include <cstdint>

namespace lockstep {

// Ends a training whose test loss has stopped improving. Source: tutorial 000.
struct EarlyStoppingConfig {
  int64_t patience = 0;          // number of worse epochs in a row that ends it; 0: never
  double delta = 0;              // a loss above best - delta is worse
  bool last_may_be_best = true;  // the epoch that ends it
};

}  // namespace lockstep
