// Checks that the weights and the loss of an evaluation are finite.
#pragma once

#include <optional>

#include "core/error.h"
#include "engine/results/training_result.h"
#include "nn/module.h"

namespace lockstep::trainers {

// Returns an error where the weights, or the loss of their evaluation, are not finite: the run then
// counts as diverged. Returns nothing where both are finite.
std::optional<DivergedError> soundness_error(const nn::Module& model, const Evaluation& evaluation);

}  // namespace lockstep::trainers
