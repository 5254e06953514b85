// Types narrower than f32, and what guards against their range, as the flags ask for it.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/autograd.h"
#include "engine/settings/choice_names.h"

namespace lockstep {

// Apex's levels. The 16-bit tensors are, at kO1: inputs, weights and results of convolutions and
// linear layers; at kO2: all activations, and the weights that they meet; at kO3: the parameters
// too.
enum class OptLevel : uint8_t { kO0, kO1, kO2, kO3 };

// As --opt-level and --dtype spell them.
inline constexpr std::array kOptLevelNames = {Named<OptLevel>(OptLevel::kO0, "O0"),
                                              Named<OptLevel>(OptLevel::kO1, "O1"),
                                              Named<OptLevel>(OptLevel::kO2, "O2"),
                                              Named<OptLevel>(OptLevel::kO3, "O3")};
inline constexpr std::array kHalfTypeNames = {Named<Dtype>(Dtype::kF16, "f16"),
                                              Named<Dtype>(Dtype::kBF16, "bf16")};

struct LossScaling {
  bool dynamic = true;
  float initial = 65536;
};

struct PrecisionConfig {
  OptLevel level = OptLevel::kO0;
  Dtype dtype = Dtype::kF16;                     // the 16-bit type; of no use at kO0
  bool keep_batchnorm_fp32 = true;               // its parameters; statistics are f32 always
  bool master_weights = true;                    // parameters are f32 and rounded for use
  std::optional<LossScaling> loss_scaling = {};  // absent: a scale of 1, and no step is skipped

  bool is_mixed() const { return level != OptLevel::kO0; }
  Precision network() const;
};

std::string_view name_of(OptLevel level);  // "O1"

// Returns Apex's types for this level, without loss scaling.
PrecisionConfig at_level(OptLevel level);

// Returns Apex's scaling: dynamic at kO1 and kO2 in f16, otherwise none.
std::optional<LossScaling> usual_loss_scaling(OptLevel level, Dtype half);

}  // namespace lockstep
