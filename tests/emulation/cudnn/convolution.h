// A convolution of the emulated machine's cuDNN, with what is fused with it: an operation graph,
// understood, on memory that its tensors describe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <cudnn_graph.h>

namespace lockstep::emulation {

// (N,C,H,W), in whatever order its strides say.
struct CudnnTensor {
  int64_t uid = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int64_t, 4> extents = {}, strides = {};
  int64_t alignment = 0;
  bool is_virtual = false;

  int64_t numel() const { return extents[0] * extents[1] * extents[2] * extents[3]; }
  size_t bytes() const;  // from its first to its last element
};
// 0 for a type that tensors here are not of.
size_t bytes_of_element(cudnnDataType_t type);

enum class CudnnPass : uint8_t { kForward, kBackwardData, kBackwardWeight };

// Memory of a tensor at an execution; null for one that the graph has not.
using CudnnPlaces = std::function<void*(const CudnnTensor& tensor)>;

struct Convolution {
  CudnnPass pass = CudnnPass::kForward;
  CudnnTensor in, weight, out;
  std::array<int64_t, 2> strides = {}, pads = {}, dilations = {};
  std::optional<CudnnTensor> bias, sums, square_sums, scale, shift;

  // Tensors that lie in memory, and the ones among them that are written.
  std::vector<CudnnTensor> tensors() const;
  std::vector<CudnnTensor> results() const;
  const CudnnTensor& result() const;
  int64_t groups() const { return in.extents[1] / weight.extents[1]; }  // cuDNN has no other word
  int64_t outputs() const { return result().numel(); }

  // The sum's parts: part p of output i is at p * outputs() + i. Each is summed in double and
  // rounded to f32; `reduced` rounds each to f16, `narrow` the factors to TF32's ten bits.
  struct Rounding {
    bool reduced = false, narrow = false;
  };
  void sum_parts(const CudnnPlaces& places, int64_t parts, Rounding rounding, float* to) const;
  // Adds the parts and the bias in f32, writes the result, rounded once, and the sums of GenStats.
  // Those are of values that are not rounded yet: cuDNN does not say which it takes, and so `out`
  // is not quite what was summed up.
  void finish(const CudnnPlaces& places, int64_t parts, const float* from) const;
};

}  // namespace lockstep::emulation
