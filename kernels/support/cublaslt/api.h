// The functions of cuBLASLt that we call, found at run time.
#pragma once

#include <string>

#include "core/cuda/library.h"
#include "kernels/support/cublaslt/abi.h"

namespace lockstep::kernels::cublaslt {

std::string soname();  // "libcublasLt.so.13": of the CUDA that this program is built for

// Thread safety: all may be called.
class Api {
 public:
  // Errors: EnvironmentError, in three lines, for a cuBLASLt that is missing, is older than 12.4,
  // or lacks a function.
  explicit Api(const std::string& name = soname());

  std::string version() const;  // "13.1.0"

 private:
  lockstep::cuda::Library library_;
  template <class Function>
  Function* find(const char* name) const {
    return library_.function<Function>(name);
  }

 public:
  GetVersionFunction* const get_version = find<GetVersionFunction>("cublasLtGetVersion");
  GetStatusStringFunction* const get_status_string =
      find<GetStatusStringFunction>("cublasLtGetStatusString");
  CreateFunction* const create = find<CreateFunction>("cublasLtCreate");
  DestroyFunction* const destroy = find<DestroyFunction>("cublasLtDestroy");
  MatmulDescCreateFunction* const matmul_desc_create =
      find<MatmulDescCreateFunction>("cublasLtMatmulDescCreate");
  MatmulDescDestroyFunction* const matmul_desc_destroy =
      find<MatmulDescDestroyFunction>("cublasLtMatmulDescDestroy");
  MatmulDescSetAttributeFunction* const matmul_desc_set_attribute =
      find<MatmulDescSetAttributeFunction>("cublasLtMatmulDescSetAttribute");
  LayoutCreateFunction* const layout_create =
      find<LayoutCreateFunction>("cublasLtMatrixLayoutCreate");
  LayoutDestroyFunction* const layout_destroy =
      find<LayoutDestroyFunction>("cublasLtMatrixLayoutDestroy");
  PreferenceCreateFunction* const preference_create =
      find<PreferenceCreateFunction>("cublasLtMatmulPreferenceCreate");
  PreferenceDestroyFunction* const preference_destroy =
      find<PreferenceDestroyFunction>("cublasLtMatmulPreferenceDestroy");
  PreferenceSetAttributeFunction* const preference_set_attribute =
      find<PreferenceSetAttributeFunction>("cublasLtMatmulPreferenceSetAttribute");
  GetHeuristicFunction* const get_heuristic =
      find<GetHeuristicFunction>("cublasLtMatmulAlgoGetHeuristic");
  MatmulFunction* const matmul = find<MatmulFunction>("cublasLtMatmul");
};

// The process's own, opened at the first call. Errors: as Api.
const Api& api();

}  // namespace lockstep::kernels::cublaslt
