// Specification of kernels/optim/sgd.h in double, one element at a time.
#pragma once

namespace lockstep::reference {

struct SgdElement {
  double param, buf;
};

inline SgdElement sgd_step(SgdElement at,
                           double grad,
                           double lr,
                           double momentum,
                           double weight_decay,
                           bool nesterov,
                           double factor = 1) {
  double g = (grad + weight_decay * at.param) * factor;
  if (momentum != 0) {
    at.buf = momentum * at.buf + g;
    g = nesterov ? g + momentum * at.buf : at.buf;
  }
  return {at.param - lr * g, at.buf};
}

}  // namespace lockstep::reference
