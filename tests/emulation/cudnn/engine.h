// Engines of the emulated cuDNN: the ways to compute a convolution.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <cudnn_graph.h>

namespace lockstep::emulation {

struct Convolution;

// A knob whose value is the number of parts that a sum is split into. Each part is rounded to f32,
// so another value gives other bits. The parts are kept in the workspace.
inline constexpr cudnnBackendKnobType_t kPartsKnob = CUDNN_KNOB_TYPE_SPLIT_K_SLC;
// A knob that always has the same value.
inline constexpr cudnnBackendKnobType_t kTileKnob = CUDNN_KNOB_TYPE_TILE_SIZE;

struct CudnnEngine {
  int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> notes = {};
  bool has_knobs = false;
  int64_t parts = 1;
  int64_t steps = 1;  // steps in the stream's queue, which stand for running time
  int64_t min_workspace = 0;
  bool is_refused = false;  // finalizing a plan for this engine fails

  bool has(cudnnBackendNumericalNote_t note) const;
  // The workspace bytes that a plan for this convolution needs.
  int64_t workspace(const Convolution& work) const;
};

// The text of LOCKSTEP_EMULATION_CUDNN: "on" or a fault; empty if there is no cuDNN.
std::string_view planted_cudnn();

// Engines in order of preference; empty if no engine supports the graph. Like the real cuDNN it
// prefers fast engines: those with sums in any order, TF32, f16 sums or a large workspace.
std::vector<CudnnEngine> preferred_engines(const Convolution& work, cudnnBackendHeurMode_t mode);

}  // namespace lockstep::emulation
