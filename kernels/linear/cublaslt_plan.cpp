// A row-major (R,C) is cuBLASLt's column-major matrix of C rows, so every product is written down
// transposed: out^T = weight in^T, where cuBLASLt sees weight^T and in^T.
#include "kernels/linear/cublaslt_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::kernels::cublaslt {
namespace {

constexpr int kMostAsked = 16;

DataType data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return kFloat32;
    case Dtype::kF16:
      return kFloat16;
    case Dtype::kBF16:
      return kBfloat16;
    default:
      throw DtypeError(fmt::format("[cublaslt] dtype: got {}, expected a float", name_of(dtype)));
  }
}

// A row-major tensor (count, width).
struct Matrix {
  int64_t count, width;
};
struct Product {
  Matrix a, b, d;
  Transform transform_a, transform_b;
};

Product product_of(const LinearProblem& p) {
  const Matrix in{p.images, p.inputs}, weight{p.outputs, p.inputs}, out{p.images, p.outputs};
  switch (p.pass) {
    case LinearPass::kForward:
      return {weight, in, out, kTransposed, kAsItIs};
    case LinearPass::kBackwardData:
      return {weight, out, in, kAsItIs, kAsItIs};
    case LinearPass::kBackwardWeight:
      return {in, out, weight, kAsItIs, kTransposed};
  }
  throw InternalError("[cublaslt] unknown pass");
}

template <class Opaque>
using Owned = std::unique_ptr<Opaque, Status (*)(Opaque*)>;

Owned<LayoutOpaque> layout(const Matrix& matrix, DataType type) {
  Layout made = nullptr;
  check(api().layout_create(&made,
                            type,
                            static_cast<uint64_t>(matrix.width),
                            static_cast<uint64_t>(matrix.count),
                            matrix.width),
        "a layout");
  return {made, api().layout_destroy};
}

template <class T>
void set(MatmulDesc operation, MatmulDescAttribute attribute, T value) {
  check(api().matmul_desc_set_attribute(
            operation, attribute, static_cast<const void*>(&value), sizeof(value)),
        fmt::format("attribute {}", static_cast<int>(attribute)));
}
template <class T>
void set(Preference preference, PreferenceAttribute attribute, T value) {
  check(api().preference_set_attribute(preference, attribute, &value, sizeof(value)),
        fmt::format("preference {}", static_cast<int>(attribute)));
}

Owned<MatmulDescOpaque> operation_of(const LinearProblem& problem) {
  const Product product = product_of(problem);
  MatmulDesc made = nullptr;
  check(api().matmul_desc_create(&made, kComputeFloat32, kFloat32), "an operation");
  Owned<MatmulDescOpaque> owned(made, api().matmul_desc_destroy);
  set<int32_t>(made, kTransformA, product.transform_a);
  set<int32_t>(made, kTransformB, product.transform_b);
  if (problem.has_bias) {
    set<uint32_t>(made, kEpilogue, kAddBias);
    // The heuristic looks at the address for its alignment alone, here no more than is promised.
    alignas(2 * kBiasAlignment) static constexpr std::byte kPlaces[2 * kBiasAlignment]{};
    set(made, kBiasPointer, static_cast<const void*>(kPlaces + kBiasAlignment));
  }
  return owned;
}

Owned<PreferenceOpaque> preference_of(const LinearProblem& problem) {
  Preference made = nullptr;
  check(api().preference_create(&made), "a preference");
  Owned<PreferenceOpaque> owned(made, api().preference_destroy);
  set<uint64_t>(made, kMostWorkspaceBytes, kMostWorkspace);
  // The others round parts of a sum to the result's type.
  set<uint32_t>(made, kReductions, kReduceInComputeType);
  set(made, kAlignmentA, static_cast<uint32_t>(problem.alignment_a));
  set(made, kAlignmentB, static_cast<uint32_t>(problem.alignment_b));
  set(made, kAlignmentC, static_cast<uint32_t>(problem.alignment_d));
  set(made, kAlignmentD, static_cast<uint32_t>(problem.alignment_d));
  return owned;
}

DataType result_type(const LinearProblem& problem) {
  return problem.pass == LinearPass::kBackwardWeight ? kFloat32 : data_type(problem.dtype);
}

std::optional<HeuristicResult> find_algorithm(Handle handle, const LinearProblem& problem) {
  const Product product = product_of(problem);
  const auto operation = operation_of(problem);
  const auto preference = preference_of(problem);
  const auto a = layout(product.a, data_type(problem.dtype));
  const auto b = layout(product.b, data_type(problem.dtype));
  const auto d = layout(product.d, result_type(problem));
  std::array<HeuristicResult, kMostAsked> results{};
  int found = 0;
  const Status status = api().get_heuristic(handle,
                                            operation.get(),
                                            a.get(),
                                            b.get(),
                                            d.get(),
                                            d.get(),
                                            preference.get(),
                                            kMostAsked,
                                            results.data(),
                                            &found);
  if (status == kNotSupported) return std::nullopt;
  check(status, "to choose an algorithm");
  for (int i = 0; i < found; ++i) {
    const HeuristicResult& result = results[static_cast<size_t>(i)];
    if (result.status == kSuccess && result.workspace_bytes <= kMostWorkspace) return result;
  }
  return std::nullopt;
}

// "f16, which has one", or that none does.
std::string other_types(Handle handle, const LinearProblem& problem) {
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

HeuristicResult choose_algorithm(Handle handle, const LinearProblem& problem) {
  if (const auto found = find_algorithm(handle, problem)) return *found;
  throw EnvironmentError(
      "cuBLASLt has no algorithm for a product of linear",
      fmt::format("{}: none of cuBLASLt {} computes it with the same bits each time and no more "
                  "than {} MiB of workspace",
                  problem.text(),
                  api().version(),
                  kMostWorkspace >> 20),
      other_types(handle, problem));
}

}  // namespace

void check(Status status, std::string_view call) {
  if (status == kSuccess) return;
  throw EnvironmentError(
      fmt::format("cuBLASLt refused {}", call),
      fmt::format("status {}: {}", static_cast<int>(status), api().get_status_string(status)),
      "CUBLASLT_LOG_LEVEL=2 shows more");
}

LinearPlan::LinearPlan(Handle handle, const LinearProblem& problem)
    : handle_(handle),
      operation_(operation_of(problem)),
      a_(layout(product_of(problem).a, data_type(problem.dtype))),
      b_(layout(product_of(problem).b, data_type(problem.dtype))),
      d_(layout(product_of(problem).d, result_type(problem))),
      has_bias_(problem.has_bias),
      chosen_(choose_algorithm(handle, problem)) {}

void LinearPlan::execute(const LinearMemory& memory, void* workspace, CUstream_st* stream) const {
  constexpr float kOne = 1, kZero = 0;
  if (has_bias_) set(operation_.get(), kBiasPointer, memory.bias);
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
                     &chosen_.algorithm,
                     workspace,
                     chosen_.workspace_bytes,
                     stream),
        "a matrix product");
}

}  // namespace lockstep::kernels::cublaslt
