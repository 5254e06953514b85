// Gradients by central differences, to check hand-written ones.
#pragma once

#include <functional>
#include <vector>

namespace lockstep::testing {

// (f(x + step * e_i) - f(x - step * e_i)) / (2 * step) for every i.
inline std::vector<double> numerical_gradient(
    const std::function<double(const std::vector<double>&)>& f,
    std::vector<double> x,
    double step = 1e-5) {
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double centre = x[i];
    x[i] = centre + step;
    const double above = f(x);
    x[i] = centre - step;
    const double below = f(x);
    x[i] = centre;
    gradient[i] = (above - below) / (2 * step);
  }
  return gradient;
}

}  // namespace lockstep::testing
