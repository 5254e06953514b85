// Whether an evaluation means anything.
#pragma once

#include <optional>

#include "core/error.h"
#include "nn/module.h"
#include "trainers/report/training_result.h"

namespace lockstep::trainers {

// Says that weights are not finite, or that the loss of their evaluation is not: it then counts as
// a run that diverged. Returns nothing where all is well.
std::optional<DivergedError> doubt_about(const nn::Module& model, const Evaluation& evaluation);

}  // namespace lockstep::trainers
