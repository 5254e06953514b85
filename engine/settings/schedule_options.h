// How the learning rate changes over a training.
#pragma once

#include <cstdint>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep {

enum class ScheduleKind : uint8_t {
  kConstant,
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

struct WarmupOptions {
  WarmupMethod method = WarmupMethod::kLinear;
  double decay = 0.01;  // d
  // True: kStep, kMultiStep, kCosine, kLinear and kPoly start after warm-up, as in torchvision's
  // SequentialLR. False: they start with the run, and warm-up hides their first epochs, as in
  // Apex's and timm's scripts.
  bool is_prefix = true;
};

struct PlateauOptions {
  int64_t patience = 10;
  double threshold = 1e-4;
  bool on_accuracy = false;  // else on the validation loss
  bool upwards = false;      // a greater metric is better
};

// From lr / div over the first part pct_start of the run to lr, then to lr / (div * final_div),
// each along half a cosine. Source: torch.optim.lr_scheduler.OneCycleLR, without its cycle of
// momentum.
struct OneCycleOptions {
  double pct_start = 0.3;
  double div = 25;
  double final_div = 1e4;
};

// The rate's factor along two straight lines: from `start` at the first step to 1 after the part
// `peak` of the run, rounded down to steps, then toward `end`, which it would reach one step after
// the last. Source: airbench94.
struct TriangularOptions {
  double start = 0.2;
  double peak = 0.23;
  double end = 0.07;
};

// The formulas: engine/update/schedule_rows.cpp.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kConstant;
  // kCosine to kTriangular and warm-up move each step, else each epoch.
  bool on_updates = true;
  int64_t step_epochs = 30;              // kStep: epochs between cuts by `gamma`, at least 1
  std::vector<int64_t> milestones = {};  // kMultiStep: epochs of cuts, ascending, from 1
  double gamma = 0.1;                    // of a cut, from 0 to 1
  double power = 1;                      // kPoly
  double min_factor = 0;                 // kCosine: the last factor
  OneCycleOptions one_cycle = {};
  TriangularOptions triangular = {};
  int64_t warmup_epochs = 0;  // from 0 to a million
  WarmupOptions warmup = {};
  PlateauOptions plateau = {};
};

}  // namespace lockstep
#pragma GCC visibility pop
