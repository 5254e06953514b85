// Faults on request, to see what a run does about them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nn/module.h"

namespace lockstep::trainers {

// LOCKSTEP_FAULT=KIND:rank=R,step=N. Kinds: flipbit (one bit of the first parameter), kill
// (SIGKILL), stop (SIGSTOP), nan (the first parameter becomes NaN), each after the step; inf (the
// loss has an infinite gradient), in the step, and with ",count=N" in the N - 1 next ones. Or
// slow:rank=R,ms=N: each step takes the rank N milliseconds more. Inert when unset.
struct Fault {
  std::string kind;
  int rank = 0;
  int64_t number = 0;  // of the step, or of milliseconds
  int64_t count = 1;   // of steps
};

// Errors: UsageError for text that is no fault.
std::optional<Fault> parse_fault(const std::string& text);
// Carries out a delay when this is its rank: before the gradients of a step are waited for.
void delay(const std::optional<Fault>& fault, int rank);
// Makes the gradient of the loss infinite, (leaves) on `device`, when this is its rank and step.
void overflow(const std::optional<Fault>& fault,
              int rank,
              int64_t step,
              int64_t leaves,
              Device device,
              Tensor& gradient);
// Carries out any other fault when this is its rank and `step` steps are done.
void inject(const std::optional<Fault>& fault, int rank, int64_t step, nn::Module& model);

}  // namespace lockstep::trainers
