// Time since the kernel started this process: what a user waits for, dynamic linking included.
#pragma once

namespace lockstep::trainers {

double seconds_since_process_start();

}  // namespace lockstep::trainers
