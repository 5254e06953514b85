// Stands for cuBLASLt in a build without it: is_available() is false, so nothing else is called.
#include "core/error.h"
#include "kernels/linear/linear_cublaslt.h"

namespace lockstep::kernels::cublaslt {
namespace {

[[noreturn]] void refuse() {
  throw InternalError("this build has no cuBLASLt");
}

}  // namespace

bool is_available() {
  return false;
}
std::string version() {
  refuse();
}

void linear_forward(Stream&, const Shards&, const Tensor&, const Tensor&, const Tensor&, Tensor&) {
  refuse();
}
void linear_backward_data(Stream&, const Shards&, const Tensor&, const Tensor&, Tensor&) {
  refuse();
}
void linear_backward_weight(
    Stream&, const Shards&, const Tensor&, const Tensor&, Tensor&, Tensor&) {
  refuse();
}

}  // namespace lockstep::kernels::cublaslt
