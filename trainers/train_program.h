// A trainer from its command line to its exit code.
#pragma once

#include "trainers/options/option_table.h"

namespace lockstep::trainers {

// What main() of a trainer does.
int run_train_program(Program program, int argc, char** argv);

}  // namespace lockstep::trainers
