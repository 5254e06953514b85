// Whether an evaluation means anything.
#pragma once

#include <optional>

#include "core/error.h"
#include "nn/module.h"
#include "trainers/report/training_result.h"

namespace lockstep::trainers {

// The error of weights that are not finite, or whose evaluation has a loss that is not finite: the
// run then counts as diverged. Nothing where both are finite.
std::optional<DivergedError> soundness_error(const nn::Module& model, const Evaluation& evaluation);

}  // namespace lockstep::trainers
