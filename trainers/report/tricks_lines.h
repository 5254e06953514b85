// Lines that the script of tutorial 000 prints, with --preset ddp-tricks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/results/training_result.h"

namespace lockstep::trainers {

struct TricksEpoch {
  int64_t number = 0;  // from 0
  int64_t epochs = 0;  // of the run
  double seconds = 0;  // evaluation included
  double lr = 0;       // of the epoch's last step
  double train_loss = 0;
  double train_acc1 = 0;  // percent
  Evaluation test;
};

// A line for each rank, which in the script each process prints, and the name.
std::vector<std::string> tricks_start_lines(int64_t ranks, const std::string& name);
// "epoch: 000/500, time: 3.21s, learning_rate: 0.01, ..."; the rate as Python's repr() has it.
std::string tricks_epoch_line(const TricksEpoch& epoch);
// ReduceLROnPlateau's of PyTorch 1.3 with verbose=True.
std::string tricks_cut_line(int64_t epoch, double lr);

}  // namespace lockstep::trainers
