// `lockstep doctor`: what this machine offers for training, what of it Lockstep uses, and what is
// missing.
#pragma once

#include <ostream>

namespace lockstep::trainers {

// Prints the page, or with `ranks_alone` the number of ranks that it suggests. Returns the exit
// code: 0 where training can start, else 1.
int run_doctor(std::ostream& out, bool ranks_alone);

}  // namespace lockstep::trainers
