// A trainer, or a replay of its run, from the command line to the exit code.
#pragma once

#include <string>
#include <vector>

#include "trainers/options/flag_table.h"

namespace lockstep::trainers {

// Runs a trainer: its main() calls this alone.
int run_train_program(Program program, int argc, char** argv);

// `lockstep replay`: takes the steps before a run's trouble again and names the tensor that it
// began in. Changes nothing in the run directory but numerics.json.
int run_replay(const std::vector<std::string>& argv, const std::string& run_directory);

}  // namespace lockstep::trainers
