// How gradients change the weights.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/dtype.h"
#include "engine/settings/parameter_rules.h"
#include "nn/optimizer.h"

#pragma GCC visibility push(default)
namespace lockstep {

enum class OptimizerKind : uint8_t { kSgd, kAdam, kAdamW, kMuon, kLamb };

// The step size that lr refers to: a step of any batch, of 256 images, or of 1,024 images with any
// momentum. The last one applies to weight_decay too.
enum class LrUnit : uint8_t { kStep, k256Images, k1024Images };

struct GroupOptions {
  bool bias_decay = true;  // of parameters of no rule
  std::vector<ParameterRule> rules = {};
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  double lr = 0.01;     // as given, as is weight_decay; from 0 to 1000
  double momentum = 0;  // SGD's and Muon's; from 0 to 1
  bool nesterov = false;
  double weight_decay = 0;    // from 0 to 1000
  double clip_grad_norm = 0;  // of all gradients together; 0: not clipped; at most 1e9
  LrUnit lr_unit = LrUnit::kStep;
  Dtype muon_dtype = Dtype::kF32;  // of Muon's products
  GroupOptions groups = {};
  std::optional<nn::LarcParams> larc = {};
  std::optional<nn::LookaheadParams> lookahead = {};
  double ema = 0;  // decay of the weights' moving average; 0: none

  // Gives the schedule's first rate with `global_batch` images per step.
  double base_lr(int64_t global_batch) const;
  double base_decay() const;  // the weight decay of a step
};

}  // namespace lockstep
#pragma GCC visibility pop
