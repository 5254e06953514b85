// Plants the fault that LOCKSTEP_FAULT describes, to test how a run handles it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/observe/fault.h"
#include "nn/module.h"

namespace lockstep::trainers {

// None where the text is empty. Errors: UsageError for text that describes no fault.
std::optional<Fault> parse_fault(const std::string& text);
// Injects a fault that acts after a step, if it strikes this rank and `step` steps are done.
void inject(const std::optional<Fault>& fault, int rank, int64_t step, nn::Module& model);

}  // namespace lockstep::trainers
