// The figures of a line of progress.
#pragma once

#include <cstdint>

namespace lockstep {

// Figures of the last step, and averages over the epoch so far.
struct StepMetrics {
  double step_s = 0, step_s_avg = 0;
  double data_s = 0, data_s_avg = 0;
  double loss = 0, loss_avg = 0;
  double acc1 = 0, acc1_avg = 0;  // percent
  double acc5 = 0, acc5_avg = 0;
  double images_per_s = 0;  // over all ranks, over the last print interval
  double images_per_s_avg = 0;
  double eta_s = 0;  // to the end of the run
  double lr = 0;
  int ranks = 1;
  double comm_exposed_s = 0;  // of a step, means over ranks and the last print interval
  double comm_hidden_s = 0;
  int slowest_rank = 0;
  double skew = 0;           // SlowestRank's, 0.12 for 12 % more than the others
  double loader_waited = 0;  // part of the time of steps, over the last print interval
  const char* loader_busy_with = "";
  double loss_scale = 1;
  int64_t skipped_steps = 0;  // of the run so far
};

// Figures of one rank: of its last validation batch, and averages over its batches so far.
struct TestMetrics {
  double batch_s = 0, batch_s_avg = 0;
  double images = 0, images_avg = 0;
  double loss = 0, loss_avg = 0;  // a batch's mean
  double acc1 = 0, acc1_avg = 0;  // percent
  double acc5 = 0, acc5_avg = 0;
};

}  // namespace lockstep
