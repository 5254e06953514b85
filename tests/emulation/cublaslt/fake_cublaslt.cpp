// cuBLASLt's functions as Lockstep calls them. The machine has them where
// LOCKSTEP_EMULATION_CUBLASLT is set: to "on", or to a fault:
//   old-version, newer-version, lacks-a-function    the library
//   no-algorithm, no-algorithm:f16   the heuristic: for any type, for f16
// They promise no more than cuBLASLt: without a limit on workspace, on reductions or on alignment
// the heuristic prefers what comes with too much of it; workspaces are written over.
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

using namespace lockstep::kernels::cublaslt;
using namespace lockstep::emulation;

struct cublasLtContext {
  int device;
};
namespace lockstep::kernels::cublaslt {
struct MatmulDescOpaque {
  int32_t transform_a = kAsItIs, transform_b = kAsItIs;
  uint32_t epilogue = kNoEpilogue;
  const void* bias = nullptr;
};
struct LayoutOpaque {
  Matrix matrix;
};
struct PreferenceOpaque {
  uint64_t most_workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignment_a = 256, alignment_b = 256, alignment_c = 256, alignment_d = 256;
};
}  // namespace lockstep::kernels::cublaslt

namespace {

constexpr size_t kWorkspaceAlignment = 256;
constexpr size_t kBiasReads = 16;

// What Algorithm::data holds.
struct Choice {
  uint64_t reduction, workspace_bytes, alignment;
};

std::string_view planted() {
  const char* const text = std::getenv("LOCKSTEP_EMULATION_CUBLASLT");
  return text == nullptr ? "" : text;
}

size_t get_version() {
  if (planted() == "old-version") return version_code(12, 3, 4);
  return planted() == "newer-version" ? version_code(13, 2, 0) : version_code(13, 1, 0);
}

const char* get_status_string(Status status) {
  return status == kInvalidValue ? "invalid value" : "emulated";
}

Status create(Handle* handle) {
  *handle = new cublasLtContext{this_thread().device};
  return kSuccess;
}
Status destroy(Handle handle) {
  delete handle;
  return kSuccess;
}

Status matmul_desc_create(MatmulDesc* made, ComputeType compute, DataType scale) {
  if (compute != kComputeFloat32 || scale != kFloat32) return kNotSupported;
  *made = new MatmulDescOpaque;
  return kSuccess;
}
Status matmul_desc_destroy(MatmulDesc ended) {
  delete ended;
  return kSuccess;
}

template <class T>
Status take(T& to, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return kInvalidValue;
  std::memcpy(&to, value, bytes);
  return kSuccess;
}

Status matmul_desc_set_attribute(MatmulDesc of,
                                 MatmulDescAttribute attribute,
                                 const void* value,
                                 size_t bytes) {
  switch (attribute) {
    case kTransformA:
      return take(of->transform_a, value, bytes);
    case kTransformB:
      return take(of->transform_b, value, bytes);
    case kEpilogue:
      return take(of->epilogue, value, bytes);
    case kBiasPointer:
      return take(of->bias, value, bytes);
  }
  return kInvalidValue;
}

Status layout_create(
    Layout* made, DataType type, uint64_t rows, uint64_t columns, int64_t leading_dimension) {
  if (rows == 0 || columns == 0 || leading_dimension < static_cast<int64_t>(rows))
    return kInvalidValue;
  *made = new LayoutOpaque{{type, rows, columns, leading_dimension}};
  return kSuccess;
}
Status layout_destroy(Layout ended) {
  delete ended;
  return kSuccess;
}

Status preference_create(Preference* made) {
  *made = new PreferenceOpaque;
  return kSuccess;
}
Status preference_destroy(Preference ended) {
  delete ended;
  return kSuccess;
}
Status preference_set_attribute(Preference of,
                                PreferenceAttribute attribute,
                                const void* value,
                                size_t bytes) {
  switch (attribute) {
    case kMostWorkspaceBytes:
      return take(of->most_workspace, value, bytes);
    case kReductions:
      return take(of->reductions, value, bytes);
    case kAlignmentA:
      return take(of->alignment_a, value, bytes);
    case kAlignmentB:
      return take(of->alignment_b, value, bytes);
    case kAlignmentC:
      return take(of->alignment_c, value, bytes);
    case kAlignmentD:
      return take(of->alignment_d, value, bytes);
  }
  return kInvalidValue;
}

Product product_of(MatmulDesc operation, Layout a, Layout b, Layout d) {
  return {.a = a->matrix,
          .b = b->matrix,
          .d = d->matrix,
          .transposes_a = operation->transform_a == kTransposed,
          .transposes_b = operation->transform_b == kTransposed};
}

Status get_heuristic(Handle,
                     MatmulDesc operation,
                     Layout a,
                     Layout b,
                     Layout,
                     Layout d,
                     Preference preference,
                     int room,
                     HeuristicResult* results,
                     int* found) {
  *found = 0;
  const Product product = product_of(operation, a, b, d);
  if (!product.fits_together()) return kInvalidValue;
  const bool is_f16 = product.a.type == kFloat16;
  if (planted() == "no-algorithm" || (planted() == "no-algorithm:f16" && is_f16))
    return kNotSupported;
  const uint64_t aligned = std::min({preference->alignment_a,
                                     preference->alignment_b,
                                     preference->alignment_c,
                                     preference->alignment_d});
  const Choice choices[] = {{kReduceInPlace, 0, aligned},
                            {kReduceInOutputType, 0, aligned},
                            {kReduceInComputeType, size_t{1} << 30, aligned},
                            {kReduceInComputeType, 4096, aligned}};
  for (const Choice& choice : choices) {
    const bool is_allowed = (preference->reductions & choice.reduction) != 0 &&
                            choice.workspace_bytes <= preference->most_workspace;
    if (!is_allowed || *found == room) continue;
    HeuristicResult& result = results[(*found)++];
    result = {};
    result.workspace_bytes = choice.workspace_bytes;
    std::memcpy(result.algorithm.data, &choice, sizeof(choice));
  }
  return *found == 0 ? kNotSupported : kSuccess;
}

bool is_device(const void* at, size_t bytes, size_t alignment) {
  return state().heap.place_of(at, bytes) == Place::kDevice &&
         reinterpret_cast<uintptr_t>(at) % alignment == 0;
}

// The order of the parts of such a sum is another each time.
void disturb(const Product& product) {
  static int times = 0;
  const float last = product.d.at(product.values_d, 0, 0);
  product.d.put(product.values_d, 0, 0, last * (1 + 0.01F * static_cast<float>(++times % 5)));
}

Status matmul(Handle handle,
              MatmulDesc operation,
              const void* alpha,
              const void* a,
              Layout layout_a,
              const void* b,
              Layout layout_b,
              const void* beta,
              const void* c,
              Layout,
              void* d,
              Layout layout_d,
              const Algorithm* algorithm,
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
  const bool has_bias = operation->epilogue == kAddBias;
  if (has_bias) product.bias = operation->bias;
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
  if (!is_sound || stream == nullptr || stream->device != handle->device) return kInvalidValue;
  if (!stream->capture) ++runtime_counters.launches;
  const auto work = [=] {
    std::memset(workspace, 0xff, choice.workspace_bytes);
    product.compute();
    if (choice.reduction != kReduceInComputeType) disturb(product);
    note_written(d, product.d.bytes());
  };
  return give(*stream, work) == cudaSuccess ? kSuccess : kExecutionFailed;
}

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

void* symbol(const char* wanted) {
  const std::string_view name = wanted;
  if (name == "cublasLtMatmul" && planted() == "lacks-a-function") return nullptr;
  if (name == "cublasLtGetVersion") return address<GetVersionFunction>(get_version);
  if (name == "cublasLtGetStatusString") return address<GetStatusStringFunction>(get_status_string);
  if (name == "cublasLtCreate") return address<CreateFunction>(create);
  if (name == "cublasLtDestroy") return address<DestroyFunction>(destroy);
  if (name == "cublasLtMatmulDescCreate")
    return address<MatmulDescCreateFunction>(matmul_desc_create);
  if (name == "cublasLtMatmulDescDestroy")
    return address<MatmulDescDestroyFunction>(matmul_desc_destroy);
  if (name == "cublasLtMatmulDescSetAttribute")
    return address<MatmulDescSetAttributeFunction>(matmul_desc_set_attribute);
  if (name == "cublasLtMatrixLayoutCreate") return address<LayoutCreateFunction>(layout_create);
  if (name == "cublasLtMatrixLayoutDestroy") return address<LayoutDestroyFunction>(layout_destroy);
  if (name == "cublasLtMatmulPreferenceCreate")
    return address<PreferenceCreateFunction>(preference_create);
  if (name == "cublasLtMatmulPreferenceDestroy")
    return address<PreferenceDestroyFunction>(preference_destroy);
  if (name == "cublasLtMatmulPreferenceSetAttribute")
    return address<PreferenceSetAttributeFunction>(preference_set_attribute);
  if (name == "cublasLtMatmulAlgoGetHeuristic") return address<GetHeuristicFunction>(get_heuristic);
  if (name == "cublasLtMatmul") return address<MatmulFunction>(matmul);
  return nullptr;
}

constexpr FakeLibrary kCublaslt = {symbol};

}  // namespace

namespace lockstep::emulation {

const FakeLibrary* fake_cublaslt() {
  return planted().empty() ? nullptr : &kCublaslt;
}

}  // namespace lockstep::emulation
