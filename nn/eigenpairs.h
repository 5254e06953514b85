// Eigenvalues and eigenvectors of a small symmetric matrix, for initial weights. Computed by Eigen.
#pragma once

#include <span>
#include <vector>

namespace lockstep::nn {

struct Eigenpair {
  double value = 0;
  std::vector<double> vector;  // of length 1; its component of largest magnitude is positive
};

// Returns the eigenpairs of a matrix of `size` rows, largest eigenvalue first. If the largest
// magnitude of a vector occurs twice, its first component with that magnitude is the positive one.
// This build gives the same bits on every machine. Requires: a symmetric matrix of finite values.
// Errors: EnvironmentError in a build without Eigen.
std::vector<Eigenpair> eigenpairs(std::span<const double> matrix, int size);

}  // namespace lockstep::nn
