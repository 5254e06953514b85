// Lines that the tutorials' scripts print besides progress, and notes where their flags mean
// something else here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/launch.h"
#include "engine/results/training_result.h"
#include "trainers/config/run_request.h"
#include "trainers/options/command_line.h"

namespace lockstep::trainers {

// main.py divides a node's batch and loader workers among the node's ranks.
struct NodeShares {
  int64_t batch_per_rank = 0;    // int(batch / ranks of the node), a remainder is lost
  int64_t workers_per_rank = 0;  // ceil(workers / ranks of the node)
};
NodeShares main_py_shares(int64_t batch, int64_t workers, int64_t ranks_of_node);

// True with --preset imagenet-main and with flags that only main.py has: then -b and -j may be
// meant as main.py's.
bool follows_main_py(const Options& options);

// Returns main.py's warnings about --gpu and --seed, as far as they apply here, and notes where -b
// or -j gives another step or other threads than in main.py. None where main.py is not followed.
std::vector<std::string> main_py_notes(const Options& options,
                                       const ResolvedRun& run,
                                       const comm::Launch& launch);

// Returns main.py's lines about device and network; `loaded` are those about the weights' file.
std::vector<std::string> main_py_lines(const Options& options,
                                       const ResolvedRun& run,
                                       const comm::Launch& launch,
                                       std::span<const std::string> loaded);

// Returns the lines after start_lines(): main_py_lines() for train_resnet, else `loaded`. With
// --preset apex-imagenet they follow apex_start_lines().
std::vector<std::string> opening_lines(const Options& options,
                                       const ResolvedRun& run,
                                       const comm::Launch& launch,
                                       std::span<const std::string> loaded);

// The first lines of tutorial 001's script, with the values that Apex's "None" stands for, and its
// last line.
std::vector<std::string> apex_start_lines(const ResolvedRun& run);
std::string apex_end_line(double seconds);

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
