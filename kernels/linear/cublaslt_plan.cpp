// A row-major matrix (R,C) is a column-major matrix with C rows to cuBLASLt, so every product is
// computed in transposed form: out^T = weight in^T, where cuBLASLt sees weight^T and in^T.
#include "kernels/linear/cublaslt_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::kernels::cublaslt {
namespace {

constexpr int kMaxResults = 16;

cudaDataType_t data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return CUDA_R_32F;
    case Dtype::kF16:
      return CUDA_R_16F;
    case Dtype::kBF16:
      return CUDA_R_16BF;
    default:
      throw DtypeError(fmt::format("[cublaslt] dtype: got {}, expected a float", name_of(dtype)));
  }
}

// A row-major tensor (count, width). To cuBLASLt, whose matrices are column-major, it has `width`
// rows.
struct Matrix {
  int64_t count, width;
};
struct Product {
  Matrix a, b, d;
  cublasOperation_t transform_a, transform_b;
};

Product product_of(const LinearProblem& p) {
  const Matrix in{p.images, p.inputs}, weight{p.outputs, p.inputs}, out{p.images, p.outputs};
  switch (p.pass) {
    case LinearPass::kForward:
      return {weight, in, out, CUBLAS_OP_T, CUBLAS_OP_N};
    case LinearPass::kBackwardData:
      return {weight, out, in, CUBLAS_OP_N, CUBLAS_OP_N};
    case LinearPass::kBackwardWeight:
      return {in, out, weight, CUBLAS_OP_N, CUBLAS_OP_T};
  }
  throw InternalError("[cublaslt] unknown pass");
}

template <class Opaque>
using Owned = std::unique_ptr<Opaque, cublasStatus_t (*)(Opaque*)>;

Owned<cublasLtMatrixLayoutOpaque_t> layout(const Matrix& matrix, cudaDataType_t type) {
  cublasLtMatrixLayout_t made = nullptr;
  check(api().layout_create(&made,
                            type,
                            static_cast<uint64_t>(matrix.width),
                            static_cast<uint64_t>(matrix.count),
                            matrix.width),
        "a layout");
  return {made, api().layout_destroy};
}

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, T value) {
  check(api().matmul_desc_set_attribute(
            operation, attribute, static_cast<const void*>(&value), sizeof(value)),
        fmt::format("attribute {}", static_cast<int>(attribute)));
}
template <class T>
void set(cublasLtMatmulPreference_t preference,
         cublasLtMatmulPreferenceAttributes_t attribute,
         T value) {
  check(api().preference_set_attribute(preference, attribute, &value, sizeof(value)),
        fmt::format("preference {}", static_cast<int>(attribute)));
}

Owned<cublasLtMatmulDescOpaque_t> operation_of(const LinearProblem& problem) {
  const Product product = product_of(problem);
  cublasLtMatmulDesc_t made = nullptr;
  check(api().matmul_desc_create(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "an operation");
  Owned<cublasLtMatmulDescOpaque_t> owned(made, api().matmul_desc_destroy);
  set<int32_t>(made, CUBLASLT_MATMUL_DESC_TRANSA, product.transform_a);
  set<int32_t>(made, CUBLASLT_MATMUL_DESC_TRANSB, product.transform_b);
  if (problem.has_bias) {
    set<uint32_t>(made, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    // The heuristic uses the address only for its alignment, which here is no more than what
    // callers guarantee.
    alignas(2 * kBiasAlignment) static constexpr std::byte kPlaces[2 * kBiasAlignment]{};
    set(made,
        CUBLASLT_MATMUL_DESC_BIAS_POINTER,
        static_cast<const void*>(kPlaces + kBiasAlignment));
  }
  return owned;
}

Owned<cublasLtMatmulPreferenceOpaque_t> preference_of(const LinearProblem& problem) {
  cublasLtMatmulPreference_t made = nullptr;
  check(api().preference_create(&made), "a preference");
  Owned<cublasLtMatmulPreferenceOpaque_t> owned(made, api().preference_destroy);
  set<uint64_t>(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspace);
  // The other schemes round partial sums to the result's type.
  set<uint32_t>(
      made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(problem.alignment_a));
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(problem.alignment_b));
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(problem.alignment_d));
  set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(problem.alignment_d));
  return owned;
}

cudaDataType_t result_type(const LinearProblem& problem) {
  return problem.pass == LinearPass::kBackwardWeight ? CUDA_R_32F : data_type(problem.dtype);
}

std::optional<cublasLtMatmulHeuristicResult_t> find_algorithm(cublasLtHandle_t handle,
                                                              const LinearProblem& problem) {
  const Product product = product_of(problem);
  const auto operation = operation_of(problem);
  const auto preference = preference_of(problem);
  const auto a = layout(product.a, data_type(problem.dtype));
  const auto b = layout(product.b, data_type(problem.dtype));
  const auto d = layout(product.d, result_type(problem));
  std::array<cublasLtMatmulHeuristicResult_t, kMaxResults> results{};
  int found = 0;
  const cublasStatus_t status = api().get_heuristic(handle,
                                                    operation.get(),
                                                    a.get(),
                                                    b.get(),
                                                    d.get(),
                                                    d.get(),
                                                    preference.get(),
                                                    kMaxResults,
                                                    results.data(),
                                                    &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return std::nullopt;
  check(status, "to choose an algorithm");
  for (int i = 0; i < found; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<size_t>(i)];
    if (result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= kMaxWorkspace)
      return result;
  }
  return std::nullopt;
}

// "f16, which has one", or a text that says that no type has.
std::string other_types(cublasLtHandle_t handle, const LinearProblem& problem) {
  std::string names;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16, Dtype::kF32}) {
    LinearProblem other = problem;
    other.dtype = dtype;
    if (dtype == problem.dtype || !find_algorithm(handle, other)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : " or ", lockstep::name_of(dtype));
  }
  return names.empty() ? "build with -DLOCKSTEP_CUBLASLT=OFF: no float type has one"
                       : fmt::format("{}, which has one", names);
}

cublasLtMatmulHeuristicResult_t choose_algorithm(cublasLtHandle_t handle,
                                                 const LinearProblem& problem) {
  if (const auto found = find_algorithm(handle, problem)) return *found;
  throw EnvironmentError(
      "cuBLASLt has no algorithm for a product of linear",
      fmt::format("{}: none of cuBLASLt {} computes it with the same bits each time and no more "
                  "than {} MiB of workspace",
                  problem.text(),
                  api().version(),
                  kMaxWorkspace >> 20),
      other_types(handle, problem));
}

}  // namespace

void check(cublasStatus_t status, std::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw EnvironmentError(
      fmt::format("cuBLASLt refused {}", call),
      fmt::format("status {}: {}", static_cast<int>(status), api().get_status_string(status)),
      "CUBLASLT_LOG_LEVEL=2 shows more");
}

LinearPlan::LinearPlan(cublasLtHandle_t handle, const LinearProblem& problem)
    : handle_(handle),
      operation_(operation_of(problem)),
      a_(layout(product_of(problem).a, data_type(problem.dtype))),
      b_(layout(product_of(problem).b, data_type(problem.dtype))),
      d_(layout(product_of(problem).d, result_type(problem))),
      has_bias_(problem.has_bias),
      chosen_(choose_algorithm(handle, problem)) {}

void LinearPlan::execute(const LinearMemory& memory, void* workspace, CUstream_st* stream) const {
  constexpr float kOne = 1, kZero = 0;
  if (has_bias_) set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, memory.bias);
  check(api().matmul(handle_,
                     operation_.get(),
                     &kOne,
                     memory.a,
                     a_.get(),
                     memory.b,
                     b_.get(),
                     &kZero,
                     memory.d,
                     d_.get(),
                     memory.d,
                     d_.get(),
                     &chosen_.algo,
                     workspace,
                     chosen_.workspaceSize,
                     stream),
        "a matrix product");
}

}  // namespace lockstep::kernels::cublaslt
