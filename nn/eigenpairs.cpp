#include "nn/eigenpairs.h"

#include <cmath>

#include <Eigen/Eigenvalues>

#include "core/check.h"

namespace lockstep::nn {

std::vector<Eigenpair> eigenpairs(std::span<const double> matrix, int size) {
  LS_CHECK(std::ssize(matrix) == int64_t{size} * size, "[eigenpairs] {} rows", size);
  const Eigen::Map<const Eigen::MatrixXd> symmetric(matrix.data(), size, size);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(symmetric);
  LS_CHECK(solver.info() == Eigen::Success, "[eigenpairs] no convergence");
  std::vector<Eigenpair> pairs;
  for (int i = size - 1; i >= 0; --i) {  // they come in ascending order
    Eigen::VectorXd vector = solver.eigenvectors().col(i);
    Eigen::Index largest = 0;
    for (Eigen::Index k = 1; k < vector.size(); ++k) {
      if (std::abs(vector[k]) > std::abs(vector[largest])) largest = k;
    }
    if (vector[largest] < 0) vector = -vector;
    pairs.push_back({solver.eigenvalues()[i], {vector.begin(), vector.end()}});
  }
  return pairs;
}

}  // namespace lockstep::nn
