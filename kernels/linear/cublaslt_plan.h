// Chooses cuBLASLt's algorithm for a product of linear.
#pragma once

#include <memory>

#include "kernels/linear/cublaslt_problem.h"
#include "kernels/support/cublaslt/api.h"

namespace lockstep::kernels::cublaslt {

// Largest workspace of a call, as NVIDIA advises on Hopper.
inline constexpr size_t kMaxWorkspace = size_t{32} << 20;
inline constexpr size_t kBiasAlignment = 16;

// A call's memory on the device, aligned as the problem says. The workspace is aligned to 256
// bytes.
struct LinearMemory {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;  // of the result's type, aligned to kBiasAlignment
};

// Thread safety: none.
class LinearPlan final : public Plan {
 public:
  // Chooses the first algorithm, in cuBLASLt's order of preference, that sums in f32 in a fixed
  // order and needs at most kMaxWorkspace bytes of workspace. Errors: EnvironmentError when there
  // is none, naming the problem and a type that has one; with cuBLASLt's message when a call fails.
  LinearPlan(cublasLtHandle_t handle, const LinearProblem& problem);

  size_t workspace_bytes() const { return chosen_.workspaceSize; }
  // Queues the product on `stream`. Errors: EnvironmentError.
  void execute(const LinearMemory& memory, void* workspace, CUstream_st* stream) const;

 private:
  template <class Opaque>
  using Owned = std::unique_ptr<Opaque, cublasStatus_t (*)(Opaque*)>;

  cublasLtHandle_t handle_;
  Owned<cublasLtMatmulDescOpaque_t> operation_;
  Owned<cublasLtMatrixLayoutOpaque_t> a_, b_, d_;
  bool has_bias_;
  cublasLtMatmulHeuristicResult_t chosen_;
};

// Errors: EnvironmentError unless status is CUBLAS_STATUS_SUCCESS.
void check(cublasStatus_t status, std::string_view call);

}  // namespace lockstep::kernels::cublaslt
