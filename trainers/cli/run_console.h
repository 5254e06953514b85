// The console of a run, as its flags ask for it.
#pragma once

#include "trainers/cli/train_run.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

Console make_console(const Job& job);

}  // namespace lockstep::trainers
