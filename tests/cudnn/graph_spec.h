// Operation graphs as a test writes them, sound or not, and what a cuDNN says to each: the real one
// or the emulated machine's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <cudnn_graph.h>

namespace lockstep::testing {

// The functions that a graph is built with.
struct CudnnFunctions {
  decltype(&cudnnBackendCreateDescriptor) create = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy = nullptr;
  decltype(&cudnnBackendSetAttribute) set = nullptr;
  decltype(&cudnnBackendGetAttribute) get = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
};

struct TensorSpec {
  int64_t uid = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> extents = {};
  std::vector<int64_t> strides = {};  // empty: channels last
  int64_t alignment = 16;
  bool is_virtual = false;
};

enum class SpecPass : uint8_t { kForward, kBackwardData, kBackwardWeight };

// A convolution with what may be fused with it. The constructor makes a sound one; tests change it.
struct GraphSpec {
  GraphSpec(SpecPass its_pass, cudnnDataType_t type, int64_t images = 4);

  void add_bias();
  void add_sums();
  void add_norm();

  SpecPass pass;
  TensorSpec in, weight, out;
  std::vector<int64_t> strides = {1, 1}, pads = {1, 1}, post_pads = {1, 1}, dilations = {1, 1};
  int64_t spatial_dimensions = 2;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  float alpha = 1, beta = 0;
  // An operation is there where its tensors are.
  std::vector<TensorSpec> bias = {}, sums = {}, norm = {};
};

// The first call that was refused, "finalize tensor 3", with its status; "plan" and 0 where a plan
// was made, "no engine" and 0 where no engine that is exact takes the graph.
struct Verdict {
  std::string step;
  int status = 0;

  bool operator==(const Verdict&) const = default;
};
Verdict verdict_of(const CudnnFunctions& cudnn,
                   const GraphSpec& spec,
                   const std::string& properties);

}  // namespace lockstep::testing
