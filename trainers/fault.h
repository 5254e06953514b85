// Faults on request, to see what a run does about them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nn/module.h"

namespace lockstep::trainers {

// LOCKSTEP_FAULT=KIND:rank=R,step=N. Kinds: flipbit (one bit of the first parameter), kill
// (SIGKILL), stop (SIGSTOP), nan (the first parameter becomes NaN). Inert when unset.
struct Fault {
  std::string kind;
  int rank = 0;
  int64_t step = 0;
};

// Errors: UsageError for text that is no fault.
std::optional<Fault> parse_fault(const std::string& text);
// Carries the fault out when this is its rank and `step` steps are done.
void inject(const std::optional<Fault>& fault, int rank, int64_t step, nn::Module& model);

}  // namespace lockstep::trainers
