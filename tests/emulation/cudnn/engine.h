// Engines of the emulated machine's cuDNN: how a convolution may be computed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <cudnn_graph.h>

namespace lockstep::emulation {

struct Convolution;

// A knob and its value: in how many parts a sum is cut. Each is rounded to f32, so that other
// values leave other bits; parts lie in the workspace.
inline constexpr cudnnBackendKnobType_t kPartsKnob = CUDNN_KNOB_TYPE_SPLIT_K_SLC;
// One that is always the same.
inline constexpr cudnnBackendKnobType_t kTileKnob = CUDNN_KNOB_TYPE_TILE_SIZE;

struct CudnnEngine {
  int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> notes = {};
  bool has_knobs = false;
  int64_t parts = 1;
  int64_t steps = 1;  // of the stream's queue: the time that it takes
  int64_t most_workspace = 0;
  bool is_refused = false;  // when a plan of it is finalized

  bool has(cudnnBackendNumericalNote_t note) const;
  // Bytes that its plan for that convolution wants.
  int64_t workspace(const Convolution& work) const;
};

// The text of LOCKSTEP_EMULATION_CUDNN: "on", or a fault; empty where there is no cuDNN.
std::string_view planted_cudnn();

// In the order of preference; none where no engine takes such a graph. As real cuDNN does, it
// prefers what is fast: sums in any order, TF32, half sums, a large workspace.
std::vector<CudnnEngine> preferred_engines(const Convolution& work, cudnnBackendHeurMode_t mode);

}  // namespace lockstep::emulation
