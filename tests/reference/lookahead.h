// Specification of kernels/optim/weight_averages.h, lookahead_sync, in double, one element at a
// time: slow and fast alike.
#pragma once

#include <cmath>

namespace lockstep::reference {

inline double lookahead_sync(double fast, double slow, double alpha) {
  return (1 - alpha) * slow + alpha * fast;
}

// The alpha of step t, from 1, where it falls to `alpha` over `total` steps.
inline double falling_alpha(double alpha, double t, double total) {
  return 1 - (1 - alpha) * std::pow(t / total, 3);
}

}  // namespace lockstep::reference
