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

 public:
  decltype(&cublasLtGetVersion) const get_version =
      library_.function<decltype(cublasLtGetVersion)>("cublasLtGetVersion");
  decltype(&cublasLtGetStatusString) const get_status_string =
      library_.function<decltype(cublasLtGetStatusString)>("cublasLtGetStatusString");
  decltype(&cublasLtCreate) const create =
      library_.function<decltype(cublasLtCreate)>("cublasLtCreate");
  decltype(&cublasLtDestroy) const destroy =
      library_.function<decltype(cublasLtDestroy)>("cublasLtDestroy");
  decltype(&cublasLtMatmulDescCreate) const matmul_desc_create =
      library_.function<decltype(cublasLtMatmulDescCreate)>("cublasLtMatmulDescCreate");
  decltype(&cublasLtMatmulDescDestroy) const matmul_desc_destroy =
      library_.function<decltype(cublasLtMatmulDescDestroy)>("cublasLtMatmulDescDestroy");
  decltype(&cublasLtMatmulDescSetAttribute) const matmul_desc_set_attribute =
      library_.function<decltype(cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
  decltype(&cublasLtMatrixLayoutCreate) const layout_create =
      library_.function<decltype(cublasLtMatrixLayoutCreate)>("cublasLtMatrixLayoutCreate");
  decltype(&cublasLtMatrixLayoutDestroy) const layout_destroy =
      library_.function<decltype(cublasLtMatrixLayoutDestroy)>("cublasLtMatrixLayoutDestroy");
  decltype(&cublasLtMatmulPreferenceCreate) const preference_create =
      library_.function<decltype(cublasLtMatmulPreferenceCreate)>("cublasLtMatmulPreferenceCreate");
  decltype(&cublasLtMatmulPreferenceDestroy) const preference_destroy =
      library_.function<decltype(cublasLtMatmulPreferenceDestroy)>(
          "cublasLtMatmulPreferenceDestroy");
  decltype(&cublasLtMatmulPreferenceSetAttribute) const preference_set_attribute =
      library_.function<decltype(cublasLtMatmulPreferenceSetAttribute)>(
          "cublasLtMatmulPreferenceSetAttribute");
  decltype(&cublasLtMatmulAlgoGetHeuristic) const get_heuristic =
      library_.function<decltype(cublasLtMatmulAlgoGetHeuristic)>("cublasLtMatmulAlgoGetHeuristic");
  decltype(&cublasLtMatmul) const matmul =
      library_.function<decltype(cublasLtMatmul)>("cublasLtMatmul");
};

// The process's Api, made at the first call. Errors: as Api().
const Api& api();

}  // namespace lockstep::kernels::cublaslt
