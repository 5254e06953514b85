// One training run: set up, agree, train, leave its record.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/launch.h"
#include "core/communicator.h"
#include "trainers/config/run_config.h"
#include "trainers/options/command_line.h"
#include "trainers/replay_plan.h"

namespace lockstep::trainers {

struct TrainRequest {
  const std::vector<std::string>& argv;
  const Options& options;
  RunConfig config;  // not yet resolved
  comm::Launch launch;
  Communicator& ranks;
  std::optional<ReplayPlan> replay{};
};

// Returns kDone or kStopped. Errors: those of Training; of a replay also UsageError for ranks that
// do not have the run's bits, and EnvironmentError when the trouble does not come again. An error
// of the set-up ends all ranks here.
ExitCode train_run(const TrainRequest& request);

}  // namespace lockstep::trainers
