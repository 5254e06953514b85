// A convolution of the emulated cuDNN with the operations fused into it, decoded from an operation
// graph, and its computation on the memory of the tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <cudnn_graph.h>

namespace lockstep::emulation {

// Extents are (N,C,H,W); the strides give the memory layout.
struct CudnnTensor {
  int64_t uid = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int64_t, 4> extents = {}, strides = {};
  int64_t alignment = 0;
  bool is_virtual = false;

  int64_t numel() const { return extents[0] * extents[1] * extents[2] * extents[3]; }
  size_t bytes() const;  // from its first to its last element
};
// 0 for an unsupported type.
size_t bytes_of_element(cudnnDataType_t type);

enum class CudnnPass : uint8_t { kForward, kBackwardData, kBackwardWeight };

// Returns the memory of a tensor in an execution; null for a tensor that is not part of the graph.
using CudnnPlaces = std::function<void*(const CudnnTensor& tensor)>;

struct Convolution {
  CudnnPass pass = CudnnPass::kForward;
  CudnnTensor in, weight, out;
  std::array<int64_t, 2> strides = {}, pads = {}, dilations = {};
  std::optional<CudnnTensor> bias, sums, square_sums, scale, shift;

  // The tensors that have memory, and those of them that are written.
  std::vector<CudnnTensor> tensors() const;
  std::vector<CudnnTensor> results() const;
  const CudnnTensor& result() const;
  int64_t groups() const { return in.extents[1] / weight.extents[1]; }  // cuDNN does not say
  int64_t outputs() const { return result().numel(); }

  // Computes the parts of each sum; part p of output i is at to[p * outputs() + i]. Each part is
  // summed in double and rounded to f32. `reduced` rounds each part to f16; `narrow` rounds the
  // factors to TF32's ten bits.
  struct Rounding {
    bool reduced = false, narrow = false;
  };
  void sum_parts(const CudnnPlaces& places, int64_t parts, Rounding rounding, float* to) const;
  // Adds the parts and the bias in f32 and writes the result, rounded once, and the sums of
  // GenStats. GenStats sums the values before they are rounded: cuDNN does not specify which values
  // it takes, so the sums may differ slightly from those of `out`.
  void finish(const CudnnPlaces& places, int64_t parts, const float* from) const;
};

}  // namespace lockstep::emulation
