// cuBLASLt's C interface as far as we call it, so that a build needs no header of it: what
// cublasLt.h says since CUDA 12. tests/kernels/cublaslt_abi_test.cpp compares the two where that
// header is installed. Matrices are column-major: a row-major (R,C) is theirs of C rows.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;
struct cublasLtContext;

namespace lockstep::kernels::cublaslt {

using Handle = cublasLtContext*;
using MatmulDesc = struct MatmulDescOpaque*;  // cublasLtMatmulDesc_t
using Layout = struct LayoutOpaque*;          // cublasLtMatrixLayout_t
using Preference = struct PreferenceOpaque*;  // cublasLtMatmulPreference_t

enum Status : int {  // NOLINT(performance-enum-size): the library's, as all here
  kSuccess = 0,
  kInvalidValue = 7,
  kExecutionFailed = 13,
  kNotSupported = 15,
};
enum DataType : int {  // NOLINT(performance-enum-size)
  kFloat32 = 0,
  kFloat16 = 2,
  kBfloat16 = 14,
};
enum ComputeType : int { kComputeFloat32 = 68 };        // NOLINT(performance-enum-size)
enum Transform : int { kAsItIs = 0, kTransposed = 1 };  // NOLINT(performance-enum-size)
enum Epilogue : int { kNoEpilogue = 1, kAddBias = 4 };  // NOLINT(performance-enum-size)
// How the parts of a sum that was cut along k are added up; a mask allows several, and always none.
enum Reduction : int {  // NOLINT(performance-enum-size)
  kReduceInPlace = 1,
  kReduceInComputeType = 2,
  kReduceInOutputType = 4,
};
enum MatmulDescAttribute : int {  // NOLINT(performance-enum-size)
  kTransformA = 3,                // int32_t
  kTransformB = 4,                // int32_t
  kEpilogue = 7,                  // uint32_t
  kBiasPointer = 8,               // const void*; a value a row of the result, of the result's type
};
enum PreferenceAttribute : int {  // NOLINT(performance-enum-size)
  kMostWorkspaceBytes = 1,        // uint64_t
  kReductions = 3,                // uint32_t
  kAlignmentA = 5,                // uint32_t, bytes; so are the next three
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8,
};

struct Algorithm {
  uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status status;  // the rest means something where this is kSuccess
  float waves;
  int reserved[4];
};

using GetVersionFunction = size_t();
using GetStatusStringFunction = const char*(Status status);
using CreateFunction = Status(Handle* handle);
using DestroyFunction = Status(Handle handle);
using MatmulDescCreateFunction = Status(MatmulDesc* made, ComputeType compute, DataType scale);
using MatmulDescDestroyFunction = Status(MatmulDesc ended);
using MatmulDescSetAttributeFunction = Status(MatmulDesc of,
                                              MatmulDescAttribute attribute,
                                              const void* value,
                                              size_t bytes);
using LayoutCreateFunction =
    Status(Layout* made, DataType type, uint64_t rows, uint64_t columns, int64_t leading_dimension);
using LayoutDestroyFunction = Status(Layout ended);
using PreferenceCreateFunction = Status(Preference* made);
using PreferenceDestroyFunction = Status(Preference ended);
using PreferenceSetAttributeFunction = Status(Preference of,
                                              PreferenceAttribute attribute,
                                              const void* value,
                                              size_t bytes);
using GetHeuristicFunction = Status(Handle handle,
                                    MatmulDesc operation,
                                    Layout a,
                                    Layout b,
                                    Layout c,
                                    Layout d,
                                    Preference preference,
                                    int room,
                                    HeuristicResult* results,
                                    int* found);
// d = alpha op(a) op(b) + beta c, then the epilogue.
using MatmulFunction = Status(Handle handle,
                              MatmulDesc operation,
                              const void* alpha,
                              const void* a,
                              Layout layout_a,
                              const void* b,
                              Layout layout_b,
                              const void* beta,
                              const void* c,
                              Layout layout_c,
                              void* d,
                              Layout layout_d,
                              const Algorithm* algorithm,
                              void* workspace,
                              size_t workspace_bytes,
                              CUstream_st* stream);

// 12.4 is 120400.
constexpr size_t version_code(size_t major, size_t minor, size_t patch) {
  return major * 10000 + minor * 100 + patch;
}

}  // namespace lockstep::kernels::cublaslt
