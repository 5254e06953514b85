// Numerical gradients, to check the analytic ones of tests/reference/.
#pragma once

#include <functional>
#include <vector>

namespace lockstep::testing {

// Central differences of a scalar function: (f(x + step e_i) - f(x - step e_i)) / (2 step).
inline std::vector<double> numerical_gradient(
    const std::function<double(const std::vector<double>&)>& f,
    std::vector<double> x,
    double step = 1e-5) {
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + step;
    const double above = f(x);
    x[i] = at - step;
    const double below = f(x);
    x[i] = at;
    gradient[i] = (above - below) / (2 * step);
  }
  return gradient;
}

}  // namespace lockstep::testing
