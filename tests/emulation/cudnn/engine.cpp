#include "tests/emulation/cudnn/engine.h"

#include <algorithm>
#include <cstdlib>

#include "tests/emulation/cudnn/convolution.h"

namespace lockstep::emulation {
namespace {

constexpr int64_t kHuge = int64_t{2} << 30;
constexpr int64_t kUnalignedBytes = 40;  // makes the workspace end in the middle of a cache line

}  // namespace

std::string_view planted_cudnn() {
  const char* const text = std::getenv("LOCKSTEP_EMULATION_CUDNN");
  return text == nullptr ? "" : text;
}

bool CudnnEngine::has(cudnnBackendNumericalNote_t note) const {
  return std::ranges::find(notes, note) != notes.end();
}

int64_t CudnnEngine::workspace(const Convolution& work) const {
  const int64_t wanted =
      parts == 1 ? 0
                 : parts * work.outputs() * static_cast<int64_t>(sizeof(float)) + kUnalignedBytes;
  return std::max(wanted, min_workspace);
}

std::vector<CudnnEngine> preferred_engines(const Convolution& work, cudnnBackendHeurMode_t mode) {
  const std::string_view fault = planted_cudnn();
  const bool is_f16 = work.in.type == CUDNN_DATA_HALF;
  if (fault == "no-engine" || (fault == "no-engine:f16" && is_f16)) return {};
  const bool is_f32 = work.in.type == CUDNN_DATA_FLOAT;
  CudnnEngine knobs{.index = 6, .has_knobs = true};
  if (!is_f32) knobs.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  const auto in_parts = [&](int64_t parts, int64_t steps) {
    CudnnEngine engine = knobs;
    engine.parts = parts;
    engine.steps = steps;
    engine.is_refused = fault == "refuses-plans";
    return engine;
  };
  // Real engines that read f32 as TF32 have this note and no other.
  const auto fast_note =
      is_f32 ? CUDNN_NUMERICAL_NOTE_TENSOR_CORE : CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
  const CudnnEngine last{.index = 9, .parts = 4, .steps = 6};
  if (mode == CUDNN_HEUR_MODE_FALLBACK) return {in_parts(2, 4), last};
  return {{.index = 0, .notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, .steps = 1},
          {.index = 1, .notes = {fast_note}, .steps = 1},
          {.index = 2, .notes = {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, .steps = 1},
          {.index = 3, .parts = 5, .steps = 1, .is_refused = true},
          {.index = 4, .steps = 1, .min_workspace = kHuge},
          in_parts(2, 4),
          in_parts(1, 3),
          in_parts(2, 4),
          in_parts(3, 2)};
}

}  // namespace lockstep::emulation
