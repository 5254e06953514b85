// Eigenvalues and eigenvectors of a small symmetric matrix, for initial weights. By Eigen.
#pragma once

#include <span>
#include <vector>

namespace lockstep::nn {

struct Eigenpair {
  double value = 0;
  std::vector<double> vector;  // of length 1; its component of largest magnitude is positive
};

// Returns the pairs of a matrix of `size` rows, which lie one after another, the largest value
// first. Where the largest magnitude occurs twice, the first component with it counts. The bits are
// the same wherever this build runs. Requires: a symmetric matrix of finite values. Errors:
// EnvironmentError in a build without Eigen.
std::vector<Eigenpair> eigenpairs(std::span<const double> matrix, int size);

}  // namespace lockstep::nn
