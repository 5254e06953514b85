// How weights are updated: the optimizer and the learning-rate schedule that the flags ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/settings/parameter_rules.h"
#include "nn/optimizer.h"

namespace lockstep {

enum class OptimizerKind : uint8_t { kSgd, kAdam, kAdamW, kMuon, kLamb };
enum class ScheduleKind : uint8_t {
  kConst,
  kStep,
  kMultiStep,
  kCosine,
  kLinear,
  kPoly,
  kOneCycle,
  kTriangular,
  kPlateau
};

// With W warm-up epochs of L steps, the learning rate's factor in epoch e at step i (both from 0):
//   kLinear   d + (1 - d) e / W; on updates, d + (1 - d) i / WL
//   kFromOne  (e + 1) / W;       on updates, (i + 1) / WL
//   kApex     (i + 2) / WL: ends a little above 1
//   kFrozenCosine  kLinear's; from epoch W + 1 on, of E in all, for good
//                  (1 + cos(pi / (E - W))) / 2, the second value of a cosine over the rest
// Source: torchvision's references; DeepLearningExamples; apex/examples/imagenet; tutorial 000.
enum class WarmupMethod : uint8_t { kLinear, kFromOne, kApex, kFrozenCosine };

struct WarmupConfig {
  int64_t epochs = 0;
  WarmupMethod method = WarmupMethod::kLinear;
  double decay = 0.01;  // d
  // True: kStep, kMultiStep, kCosine, kLinear and kPoly start after warm-up, as in torchvision's
  // SequentialLR. False: they start with the run, and warm-up hides their first epochs, as in
  // Apex's and timm's scripts.
  bool is_prefix = true;
};

struct PlateauConfig {
  int64_t patience = 10;
  double threshold = 1e-4;
  bool on_accuracy = false;  // else on the validation loss
  bool upwards = false;      // a greater metric is better
};

// From lr / div over the first part pct_start of the run to lr, then to lr / (div * final_div),
// each along half a cosine. Source: torch.optim.lr_scheduler.OneCycleLR, without its cycle of
// momentum.
struct OneCycleConfig {
  double pct_start = 0.3;
  double div = 25;
  double final_div = 1e4;
};

// The rate's factor along two straight lines: from `start` at the first step to 1 after the part
// `peak` of the run, rounded down to steps, then toward `end`, which it would reach one step after
// the last. Source: airbench94.
struct TriangularConfig {
  double start = 0.2;
  double peak = 0.23;
  double end = 0.07;
};

// The step size that lr refers to: a step of any batch, of 256 images, or of 1,024 images with any
// momentum. The last one applies to weight_decay too.
enum class LrUnit : uint8_t { kStep, k256Images, k1024Images };

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConst;
  LrUnit lr_unit = LrUnit::kStep;
  // kCosine to kTriangular and warm-up move each step, else each epoch.
  bool on_updates = true;
  int64_t step_size = 30;                // epochs; kStep
  std::vector<int64_t> milestones = {};  // epochs, ascending; kMultiStep
  double gamma = 0.1;                    // of a cut
  double power = 1;                      // kPoly
  double min_factor = 0;                 // the last factor; kCosine
  OneCycleConfig one_cycle = {};
  TriangularConfig triangular = {};
  WarmupConfig warmup = {};
  PlateauConfig plateau = {};
};

struct GroupsConfig {
  bool bias_decay = true;  // of parameters of no rule
  std::vector<ParameterRule> rules = {};
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kSgd;
  double lr = 0;  // as given, as is weight_decay
  double momentum = 0;
  bool nesterov = false;
  Dtype muon_dtype = Dtype::kF32;  // of Muon's products
  double weight_decay = 0;
  GroupsConfig groups = {};
  double clip_grad_norm = 0;  // of all gradients together; 0: any
  std::optional<nn::LarcParams> larc = {};
  std::optional<nn::LookaheadParams> lookahead = {};
  double ema = 0;  // decay of the weights' moving average; 0: none
  ScheduleConfig schedule = {};

  // Gives the schedule's first rate with `global_batch` images per step.
  double base_lr(int64_t global_batch) const;
  // Likewise the weight decay of a step.
  double base_decay() const;
};

// Steps of so many epochs; the last of them may be cut short.
int64_t steps_of(double epochs, int64_t steps_per_epoch);

}  // namespace lockstep
