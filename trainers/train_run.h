// One training run: set up, agree, train, leave its record.
#pragma once

#include <string>
#include <vector>

#include "comm/launch.h"
#include "core/communicator.h"
#include "trainers/config/run_config.h"
#include "trainers/options/command_line.h"

namespace lockstep::trainers {

struct TrainRequest {
  const std::vector<std::string>& argv;
  const Options& options;
  RunConfig config;  // not yet resolved
  comm::Launch launch;
  Communicator& ranks;
};

// Returns kDone or kStopped. Errors: those of Training; an error of the set-up ends all ranks here.
ExitCode train_run(const TrainRequest& request);

}  // namespace lockstep::trainers
