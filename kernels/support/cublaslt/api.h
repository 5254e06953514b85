// The functions of cuBLASLt that we call, found at run time.
#pragma once

#include <string>

#include <cublasLt.h>

#include "core/cuda/library.h"

namespace lockstep::kernels::cublaslt {

std::string soname();  // "libcublasLt.so.13", for the CUDA that this program is built for

// Thread safety: all functions may be called from any thread.
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
  decltype(&cublasLtGetVersion) const get_version =
      find<decltype(cublasLtGetVersion)>("cublasLtGetVersion");
  decltype(&cublasLtGetStatusString) const get_status_string =
      find<decltype(cublasLtGetStatusString)>("cublasLtGetStatusString");
  decltype(&cublasLtCreate) const create = find<decltype(cublasLtCreate)>("cublasLtCreate");
  decltype(&cublasLtDestroy) const destroy = find<decltype(cublasLtDestroy)>("cublasLtDestroy");
  decltype(&cublasLtMatmulDescCreate) const matmul_desc_create =
      find<decltype(cublasLtMatmulDescCreate)>("cublasLtMatmulDescCreate");
  decltype(&cublasLtMatmulDescDestroy) const matmul_desc_destroy =
      find<decltype(cublasLtMatmulDescDestroy)>("cublasLtMatmulDescDestroy");
  decltype(&cublasLtMatmulDescSetAttribute) const matmul_desc_set_attribute =
      find<decltype(cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
  decltype(&cublasLtMatrixLayoutCreate) const layout_create =
      find<decltype(cublasLtMatrixLayoutCreate)>("cublasLtMatrixLayoutCreate");
  decltype(&cublasLtMatrixLayoutDestroy) const layout_destroy =
      find<decltype(cublasLtMatrixLayoutDestroy)>("cublasLtMatrixLayoutDestroy");
  decltype(&cublasLtMatmulPreferenceCreate) const preference_create =
      find<decltype(cublasLtMatmulPreferenceCreate)>("cublasLtMatmulPreferenceCreate");
  decltype(&cublasLtMatmulPreferenceDestroy) const preference_destroy =
      find<decltype(cublasLtMatmulPreferenceDestroy)>("cublasLtMatmulPreferenceDestroy");
  decltype(&cublasLtMatmulPreferenceSetAttribute) const preference_set_attribute =
      find<decltype(cublasLtMatmulPreferenceSetAttribute)>("cublasLtMatmulPreferenceSetAttribute");
  decltype(&cublasLtMatmulAlgoGetHeuristic) const get_heuristic =
      find<decltype(cublasLtMatmulAlgoGetHeuristic)>("cublasLtMatmulAlgoGetHeuristic");
  decltype(&cublasLtMatmul) const matmul = find<decltype(cublasLtMatmul)>("cublasLtMatmul");
};

// The process's Api, made at the first call. Errors: as Api().
const Api& api();

}  // namespace lockstep::kernels::cublaslt
