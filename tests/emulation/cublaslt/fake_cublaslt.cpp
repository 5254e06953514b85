// The cuBLASLt functions that Lockstep calls. They exist on the emulated machine if
// LOCKSTEP_EMULATION_CUBLASLT is set to "on" or to a fault:
//   old-version, newer-version, lacks-a-function   faults of the library
//   no-algorithm, no-algorithm:f16   the heuristic finds none, for any type or for f16
// They guarantee no more than cuBLASLt does. Unless the preference limits workspace, reductions and
// alignment, the heuristic prefers algorithms that Lockstep must not use. Workspaces are
// overwritten.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/emulation/access_check.h"
#include "tests/emulation/cublaslt/product.h"
#include "tests/emulation/engine.h"
#include "tests/emulation/runtime/libraries.h"
#include "tests/emulation/runtime/state.h"

using namespace lockstep::emulation;

struct cublasLtContext {
  int device;
};

namespace {

struct MatmulDesc : cublasLtMatmulDescOpaque_t {
  int32_t transform_a = CUBLAS_OP_N, transform_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct Layout : cublasLtMatrixLayoutOpaque_t {
  explicit Layout(const Matrix& its_matrix) : matrix(its_matrix) {}
  Matrix matrix;
};
struct Preference : cublasLtMatmulPreferenceOpaque_t {
  uint64_t max_workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignment_a = 256, alignment_b = 256, alignment_c = 256, alignment_d = 256;
};

constexpr size_t kWorkspaceAlignment = 256;
constexpr size_t kBiasReads = 16;

// The content of cublasLtMatmulAlgo_t::data.
struct Choice {
  uint64_t reduction, workspace_bytes, alignment;
};

std::string_view planted() {
  const char* const text = std::getenv("LOCKSTEP_EMULATION_CUBLASLT");
  return text == nullptr ? "" : text;
}

template <class T>
cublasStatus_t take(T& to, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

Product product_of(cublasLtMatmulDesc_t operation,
                   cublasLtMatrixLayout_t a,
                   cublasLtMatrixLayout_t b,
                   cublasLtMatrixLayout_t d) {
  const auto& described = static_cast<const MatmulDesc&>(*operation);
  const auto matrix = [](cublasLtMatrixLayout_t layout) -> const Matrix& {
    return static_cast<const Layout&>(*layout).matrix;
  };
  return {.a = matrix(a),
          .b = matrix(b),
          .d = matrix(d),
          .transposes_a = described.transform_a == CUBLAS_OP_T,
          .transposes_b = described.transform_b == CUBLAS_OP_T};
}

bool is_device(const void* at, size_t bytes, size_t alignment) {
  return state().heap.place_of(at, bytes) == Place::kDevice &&
         reinterpret_cast<uintptr_t>(at) % alignment == 0;
}

// Changes the result a little on each call, like a reduction whose order varies.
void disturb(const Product& product) {
  static int times = 0;
  const float last = product.d.at(product.values_d, 0, 0);
  product.d.put(product.values_d, 0, 0, last * (1 + 0.01F * static_cast<float>(++times % 5)));
}

}  // namespace

size_t cublasLtGetVersion() {
  if (planted() == "old-version") return 120304;
  return planted() == "newer-version" ? 130200 : 130100;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "invalid value" : "emulated";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext{this_thread().device};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *made = new MatmulDesc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t ended) {
  delete static_cast<MatmulDesc*>(ended);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value,
                                              size_t bytes) {
  auto& operation = static_cast<MatmulDesc&>(*of);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(operation.transform_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(operation.transform_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(operation.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(operation.bias, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made,
                                          cudaDataType_t type,
                                          uint64_t rows,
                                          uint64_t columns,
                                          int64_t leading_dimension) {
  if (rows == 0 || columns == 0 || leading_dimension < static_cast<int64_t>(rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  *made = new Layout({type, rows, columns, leading_dimension});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t ended) {
  delete static_cast<Layout*>(ended);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = new Preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t ended) {
  delete static_cast<Preference*>(ended);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t of,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value,
                                                    size_t bytes) {
  auto& preference = static_cast<Preference&>(*of);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return take(preference.max_workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return take(preference.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return take(preference.alignment_a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return take(preference.alignment_b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return take(preference.alignment_c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(preference.alignment_d, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t,
                                              cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference,
                                              int capacity,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  *found = 0;
  const auto& wanted = static_cast<const Preference&>(*preference);
  const Product product = product_of(operation, a, b, d);
  if (!product.fits_together()) return CUBLAS_STATUS_INVALID_VALUE;
  const bool is_f16 = product.a.type == CUDA_R_16F;
  if (planted() == "no-algorithm" || (planted() == "no-algorithm:f16" && is_f16))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const uint64_t aligned =
      std::min({wanted.alignment_a, wanted.alignment_b, wanted.alignment_c, wanted.alignment_d});
  const Choice choices[] = {{CUBLASLT_REDUCTION_SCHEME_INPLACE, 0, aligned},
                            {CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 0, aligned},
                            {CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, size_t{1} << 30, aligned},
                            {CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 4096, aligned}};
  for (const Choice& choice : choices) {
    const bool is_allowed = (wanted.reductions & choice.reduction) != 0 &&
                            choice.workspace_bytes <= wanted.max_workspace;
    if (!is_allowed || *found == capacity) continue;
    cublasLtMatmulHeuristicResult_t& result = results[(*found)++];
    result = {};
    result.workspaceSize = choice.workspace_bytes;
    std::memcpy(result.algo.data, &choice, sizeof(choice));
  }
  return *found == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle,
                              cublasLtMatmulDesc_t operation,
                              const void* alpha,
                              const void* a,
                              cublasLtMatrixLayout_t layout_a,
                              const void* b,
                              cublasLtMatrixLayout_t layout_b,
                              const void* beta,
                              const void* c,
                              cublasLtMatrixLayout_t,
                              void* d,
                              cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t* algorithm,
                              void* workspace,
                              size_t workspace_bytes,
                              CUstream_st* to) {
  const std::lock_guard lock(state().mutex);
  Choice choice{};
  std::memcpy(&choice, algorithm->data, sizeof(choice));
  Product product = product_of(operation, layout_a, layout_b, layout_d);
  product.values_a = a;
  product.values_b = b;
  product.values_d = d;
  const auto& described = static_cast<const MatmulDesc&>(*operation);
  const bool has_bias = described.epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (has_bias) product.bias = described.bias;
  const bool is_plain =
      *static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0 && c == d;
  const bool is_sound =
      is_plain && product.fits_together() && workspace_bytes >= choice.workspace_bytes &&
      is_device(a, product.a.bytes(), choice.alignment) &&
      is_device(b, product.b.bytes(), choice.alignment) &&
      is_device(d, product.d.bytes(), choice.alignment) &&
      is_device(workspace, choice.workspace_bytes, kWorkspaceAlignment) &&
      (!has_bias ||
       is_device(product.bias, product.d.rows * product.d.element_bytes(), kBiasReads));
  CUstream_st* const stream = state().queues.find(to);
  if (!is_sound || stream == nullptr || stream->device != handle->device)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!stream->capture) ++runtime_counters.launches;
  const auto work = [=] {
    std::memset(workspace, 0xff, choice.workspace_bytes);
    product.compute();
    if (choice.reduction != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) disturb(product);
    note_written(d, product.d.bytes());
  };
  return submit(*stream, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                              : CUBLAS_STATUS_EXECUTION_FAILED;
}

namespace {

const FakeFunction kFunctions[] = {
    LS_FAKE(cublasLtGetVersion),
    LS_FAKE(cublasLtGetStatusString),
    LS_FAKE(cublasLtCreate),
    LS_FAKE(cublasLtDestroy),
    LS_FAKE(cublasLtMatmulDescCreate),
    LS_FAKE(cublasLtMatmulDescDestroy),
    LS_FAKE(cublasLtMatmulDescSetAttribute),
    LS_FAKE(cublasLtMatrixLayoutCreate),
    LS_FAKE(cublasLtMatrixLayoutDestroy),
    LS_FAKE(cublasLtMatmulPreferenceCreate),
    LS_FAKE(cublasLtMatmulPreferenceDestroy),
    LS_FAKE(cublasLtMatmulPreferenceSetAttribute),
    LS_FAKE(cublasLtMatmulAlgoGetHeuristic),
    LS_FAKE(cublasLtMatmul),
};

void* symbol(const char* wanted) {
  const std::string_view name = wanted;
  if (name == "cublasLtMatmul" && planted() == "lacks-a-function") return nullptr;
  for (const FakeFunction& function : kFunctions) {
    if (name == function.name) return function.address;
  }
  return nullptr;
}

constexpr FakeLibrary kCublaslt = {symbol};

}  // namespace

namespace lockstep::emulation {

const FakeLibrary* fake_cublaslt() {
  return planted().empty() ? nullptr : &kCublaslt;
}

}  // namespace lockstep::emulation
