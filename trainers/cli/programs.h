// The trainers, each from its command line to its exit code.
#pragma once

#include <string>
#include <vector>

#include "trainers/options/flag_table.h"

namespace lockstep::trainers {

// Runs a trainer: its main() calls this alone.
int run_train_program(Program program, int argc, char** argv);

// `lockstep replay`: repeats the steps before a run's failure and names the tensor in which it
// began. Changes nothing in the run directory but numerics.json.
int run_replay(const std::vector<std::string>& argv, const std::string& run_directory);

}  // namespace lockstep::trainers
