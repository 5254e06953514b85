// One training run: sets it up, lets the ranks agree on it, trains and leaves its record.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/launch.h"
#include "core/communicator.h"
#include "engine/observe/flight_files.h"
#include "trainers/config/run_request.h"
#include "trainers/debug/replay_plan.h"
#include "trainers/options/command_line.h"

namespace lockstep::trainers {

// One rank's part of a training: its options and its peers.
struct Job {
  const std::vector<std::string>& argv;
  const Options& options;
  const RunRequest& request;  // of `options`
  comm::Launch launch;
  Communicator& ranks;
  std::string_view transport;  // of `ranks`, as comm::Connection names it, or "threads"
  std::optional<ReplayPlan> replay{};
  FlightFiles* flight = nullptr;  // keeps this rank's record
};

// Returns kDone or kStopped. Errors: those of Training. A replay also has UsageError for ranks that
// do not reproduce the run's bits, and EnvironmentError when the failure does not recur. An error
// of the set-up ends all ranks here.
ExitCode train_run(const Job& job);

}  // namespace lockstep::trainers
