// The function of nn/eigenpairs.h in a build without Eigen.
#include "core/error.h"
#include "nn/eigenpairs.h"

namespace lockstep::nn {

std::vector<Eigenpair> eigenpairs(std::span<const double> /*matrix*/, int /*size*/) {
  throw EnvironmentError(
      "this build cannot compute the filters of a whitening layer",
      "Eigen was not found when it was configured, or LOCKSTEP_EIGEN=OFF",
      "scripts/setup.sh and cmake --preset release -DLOCKSTEP_EIGEN=ON, or weights of a training");
}

}  // namespace lockstep::nn
