// The functions of cuDNN that we call, found at run time.
#pragma once

#include <string>
#include <string_view>

#include <cudnn_graph.h>

#include "core/cuda/library.h"

namespace lockstep::kernels::cudnn {

inline constexpr const char* kSoname = "libcudnn.so.9";

// Functions of the graph API, cuDNN 9's C interface. Thread safety: all functions may be called
// from any thread.
class Api {
 public:
  // Errors: EnvironmentError, in three lines, for a cuDNN that is missing, lacks a function, or
  // was built for another major version of CUDA than this program.
  explicit Api(const std::string& soname = kSoname);

  std::string version() const;  // "9.19.0"
  // Errors: EnvironmentError when this cuDNN is older than `oldest` (91100 for 9.11.0), which
  // `what`, a plural noun, needs.
  void require(size_t oldest, std::string_view what) const;

 private:
  lockstep::cuda::Library library_;

 public:
  decltype(&cudnnGetVersion) const get_version =
      library_.function<decltype(cudnnGetVersion)>("cudnnGetVersion");
  decltype(&cudnnGetCudartVersion) const get_cudart_version =
      library_.function<decltype(cudnnGetCudartVersion)>("cudnnGetCudartVersion");
  decltype(&cudnnGetLastErrorString) const get_last_error_string =
      library_.function<decltype(cudnnGetLastErrorString)>("cudnnGetLastErrorString");
  decltype(&cudnnCreate) const create = library_.function<decltype(cudnnCreate)>("cudnnCreate");
  decltype(&cudnnDestroy) const destroy = library_.function<decltype(cudnnDestroy)>("cudnnDestroy");
  decltype(&cudnnSetStream) const set_stream =
      library_.function<decltype(cudnnSetStream)>("cudnnSetStream");
  decltype(&cudnnBackendCreateDescriptor) const create_descriptor =
      library_.function<decltype(cudnnBackendCreateDescriptor)>("cudnnBackendCreateDescriptor");
  decltype(&cudnnBackendDestroyDescriptor) const destroy_descriptor =
      library_.function<decltype(cudnnBackendDestroyDescriptor)>("cudnnBackendDestroyDescriptor");
  decltype(&cudnnBackendSetAttribute) const set_attribute =
      library_.function<decltype(cudnnBackendSetAttribute)>("cudnnBackendSetAttribute");
  decltype(&cudnnBackendGetAttribute) const get_attribute =
      library_.function<decltype(cudnnBackendGetAttribute)>("cudnnBackendGetAttribute");
  decltype(&cudnnBackendFinalize) const finalize =
      library_.function<decltype(cudnnBackendFinalize)>("cudnnBackendFinalize");
  decltype(&cudnnBackendExecute) const execute =
      library_.function<decltype(cudnnBackendExecute)>("cudnnBackendExecute");
};

// The process's Api, made at the first call. Errors: as Api().
const Api& api();

}  // namespace lockstep::kernels::cudnn
