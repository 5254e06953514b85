// A trainer from its command line to its exit code.
#pragma once

#include "trainers/option_table.h"

namespace lockstep::trainers {

// What main() of a trainer does.
int train_main(Program program, int argc, char** argv);

}  // namespace lockstep::trainers
