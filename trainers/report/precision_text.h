// Texts about the types of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/settings/precision_config.h"

namespace lockstep::trainers {

// Lists, in a line each, what may surprise in a run with this many images per rank and micro-step.
// `native_bf16`: the processor computes in bf16.
std::vector<std::string> notes_on(const PrecisionConfig& config, int64_t images, bool native_bf16);

// --explain-precision: the type of each class of tensors and of each kind of operation.
std::vector<std::string> explain(const PrecisionConfig& config);

}  // namespace lockstep::trainers
