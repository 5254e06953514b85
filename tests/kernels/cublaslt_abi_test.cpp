// Our own words for cuBLASLt's interface against its header, where one is installed.
#include <array>
#include <cstddef>

#include <gtest/gtest.h>

#include "kernels/support/cublaslt/abi.h"

#if defined(LOCKSTEP_CUDA) && __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace lockstep::kernels::cublaslt::cublaslt_abi_test {
namespace {

static_assert(kSuccess == static_cast<int>(CUBLAS_STATUS_SUCCESS));
static_assert(kInvalidValue == static_cast<int>(CUBLAS_STATUS_INVALID_VALUE));
static_assert(kExecutionFailed == static_cast<int>(CUBLAS_STATUS_EXECUTION_FAILED));
static_assert(kNotSupported == static_cast<int>(CUBLAS_STATUS_NOT_SUPPORTED));
static_assert(kFloat32 == static_cast<int>(CUDA_R_32F));
static_assert(kFloat16 == static_cast<int>(CUDA_R_16F));
static_assert(kBfloat16 == static_cast<int>(CUDA_R_16BF));
static_assert(kComputeFloat32 == static_cast<int>(CUBLAS_COMPUTE_32F));
static_assert(kAsItIs == static_cast<int>(CUBLAS_OP_N));
static_assert(kTransposed == static_cast<int>(CUBLAS_OP_T));
static_assert(kNoEpilogue == static_cast<int>(CUBLASLT_EPILOGUE_DEFAULT));
static_assert(kAddBias == static_cast<int>(CUBLASLT_EPILOGUE_BIAS));
static_assert(kReduceInPlace == static_cast<int>(CUBLASLT_REDUCTION_SCHEME_INPLACE));
static_assert(kReduceInComputeType == static_cast<int>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
static_assert(kReduceInOutputType == static_cast<int>(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE));
static_assert(kTransformA == static_cast<int>(CUBLASLT_MATMUL_DESC_TRANSA));
static_assert(kTransformB == static_cast<int>(CUBLASLT_MATMUL_DESC_TRANSB));
static_assert(kEpilogue == static_cast<int>(CUBLASLT_MATMUL_DESC_EPILOGUE));
static_assert(kBiasPointer == static_cast<int>(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
static_assert(kMostWorkspaceBytes == static_cast<int>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(kReductions == static_cast<int>(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK));
static_assert(kAlignmentA == static_cast<int>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
static_assert(kAlignmentB == static_cast<int>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES));
static_assert(kAlignmentC == static_cast<int>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES));
static_assert(kAlignmentD == static_cast<int>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));

static_assert(sizeof(Status) == sizeof(cublasStatus_t) && sizeof(DataType) == sizeof(cudaDataType));
static_assert(sizeof(ComputeType) == sizeof(cublasComputeType_t));
static_assert(sizeof(MatmulDescAttribute) == sizeof(cublasLtMatmulDescAttributes_t));
static_assert(sizeof(PreferenceAttribute) == sizeof(cublasLtMatmulPreferenceAttributes_t));
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
using Theirs = cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(HeuristicResult) == sizeof(Theirs));
static_assert(offsetof(HeuristicResult, workspace_bytes) == offsetof(Theirs, workspaceSize));
static_assert(offsetof(HeuristicResult, status) == offsetof(Theirs, state));

template <class Result, class... Arguments>
constexpr std::array<size_t, 1 + sizeof...(Arguments)> sizes(Result (*)(Arguments...)) {
  return {sizeof(Result), sizeof(Arguments)...};
}
template <class Ours, class TheirFunction>
constexpr bool takes_alike(TheirFunction* theirs) {
  return sizes(static_cast<Ours*>(nullptr)) == sizes(theirs);
}
static_assert(takes_alike<GetVersionFunction>(cublasLtGetVersion));
static_assert(takes_alike<GetStatusStringFunction>(cublasLtGetStatusString));
static_assert(takes_alike<CreateFunction>(cublasLtCreate));
static_assert(takes_alike<DestroyFunction>(cublasLtDestroy));
static_assert(takes_alike<MatmulDescCreateFunction>(cublasLtMatmulDescCreate));
static_assert(takes_alike<MatmulDescDestroyFunction>(cublasLtMatmulDescDestroy));
static_assert(takes_alike<MatmulDescSetAttributeFunction>(cublasLtMatmulDescSetAttribute));
static_assert(takes_alike<LayoutCreateFunction>(cublasLtMatrixLayoutCreate));
static_assert(takes_alike<LayoutDestroyFunction>(cublasLtMatrixLayoutDestroy));
static_assert(takes_alike<PreferenceCreateFunction>(cublasLtMatmulPreferenceCreate));
static_assert(takes_alike<PreferenceDestroyFunction>(cublasLtMatmulPreferenceDestroy));
static_assert(takes_alike<PreferenceSetAttributeFunction>(cublasLtMatmulPreferenceSetAttribute));
static_assert(takes_alike<GetHeuristicFunction>(cublasLtMatmulAlgoGetHeuristic));
static_assert(takes_alike<MatmulFunction>(cublasLtMatmul));

TEST(CublasltAbi, VersionsAreWrittenAlike) {
  EXPECT_EQ(version_code(CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH),
            size_t{CUBLAS_VERSION});
}

}  // namespace
}  // namespace lockstep::kernels::cublaslt::cublaslt_abi_test
#endif
