// Specification of kernels/optim/weight_averages.h, lookahead_sync, in double, one element at a
// time: slow and fast alike.
#pragma once

namespace lockstep::reference {

inline double lookahead_sync(double fast, double slow, double alpha) {
  return (1 - alpha) * slow + alpha * fast;
}

}  // namespace lockstep::reference
