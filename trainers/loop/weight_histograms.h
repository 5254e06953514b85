// --histograms: how weights and gradients are spread.
#pragma once

#include <cstdint>

#include "nn/module.h"
#include "trainers/report/run_log.h"

namespace lockstep::trainers {

// Appends weight/NAME, and grad/NAME of the last step less its loss scale, of every parameter.
// Waits for the device.
void log_histograms(const nn::Module& model, float loss_scale, int64_t step, RunLog& log);

}  // namespace lockstep::trainers
