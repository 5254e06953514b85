// Specification of lookahead_sync in kernels/optim/weight_averages.h, in double, for one element of
// both the slow and the fast weights.
#pragma once

#include <cmath>

namespace lockstep::reference {

inline double lookahead_sync(double fast, double slow, double alpha) {
  return (1 - alpha) * slow + alpha * fast;
}

// The alpha of step t, counted from 1, if it falls to `alpha` over `total` steps.
inline double falling_alpha(double alpha, double t, double total) {
  return 1 - (1 - alpha) * std::pow(t / total, 3);
}

}  // namespace lockstep::reference
