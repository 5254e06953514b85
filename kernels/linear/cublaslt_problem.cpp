#include "kernels/linear/cublaslt_problem.h"

#include <fmt/format.h>

namespace lockstep::kernels::cublaslt {
namespace {

std::string_view name_of(LinearPass pass) {
  switch (pass) {
    case LinearPass::kForward:
      return "forward";
    case LinearPass::kBackwardData:
      return "backward data";
    case LinearPass::kBackwardWeight:
      return "backward weight";
  }
  return "?";
}

}  // namespace

PlanKey LinearProblem::key() const {
  return {.op = "cublaslt_linear",
          .values = {images,
                     inputs,
                     outputs,
                     static_cast<int64_t>(pass),
                     static_cast<int64_t>(dtype),
                     has_bias ? 1 : 0,
                     alignment_a,
                     alignment_b,
                     alignment_d}};
}

std::string LinearProblem::text() const {
  return fmt::format("{} {} {}x{} -> {}{}",
                     name_of(pass),
                     lockstep::name_of(dtype),
                     images,
                     inputs,
                     outputs,
                     has_bias ? ", bias" : "");
}

}  // namespace lockstep::kernels::cublaslt
