// --histograms: the distribution of weights and gradients.
#pragma once

#include <cstdint>

#include "nn/module.h"
#include "trainers/report/run_log.h"

namespace lockstep::trainers {

// Appends weight/NAME and grad/NAME of every parameter. The gradients are those of the last step,
// divided by its loss scale. Waits for the device.
void log_histograms(const nn::Module& model, float loss_scale, int64_t step, RunLog& log);

}  // namespace lockstep::trainers
