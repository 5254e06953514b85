// The log lines of apex/examples/imagenet/main_amp.py, for those who parse them.
#pragma once

#include <string>

#include "trainers/output/progress.h"

namespace lockstep::trainers {

// `step` counts finished steps of `steps` in this epoch. Speeds are images a second over all ranks:
// of the last print interval, and of the epoch so far.
std::string apex_progress_line(int epoch, int64_t step, int64_t steps, const StepMetrics& metrics);
// `batch` counts from 0; speeds are one rank's.
std::string apex_test_line(int64_t batch, int64_t batches, const TestMetrics& metrics);
// " * Prec@1 76.150 Prec@5 92.870", in percent.
std::string apex_accuracy_line(double acc1, double acc5);

}  // namespace lockstep::trainers
