// Plans the replay of a run's last steps from its directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainers/debug/numerics_report.h"
#include "trainers/options/flag_table.h"

namespace lockstep::trainers {

// A replay repeats a run's steps up to `step`, and ends where its numerics report is due.
struct ReplayTarget {
  int64_t step = 0;   // counted from epoch 0
  int64_t ranks = 1;  // of the run
};

struct ReplayPlan {
  std::filesystem::path directory{};
  Program program = Program::kTrainConvnet;
  std::vector<std::string> arguments{};  // the run's own, with its division of the batch
  ReplayTarget target;
  std::string trouble{};  // "the loss is nan"
  std::string start{};    // the checkpoint to start from; empty: the run's beginning
  std::string data_digest{};
  std::vector<int64_t> same_bits{};  // rank counts that give the run's bits

  // Errors: UsageError when `ranks` ranks give other bits than the run had, DataError for data of
  // another digest.
  void check(int64_t ranks, const std::string& data_digest) const;
  // Describes the replay that is about to run.
  std::string line(int64_t ranks) const;
  // Rewrites numerics.json, which now has names. Errors: EnvironmentError.
  void keep(const NumericsReport& report) const;
  // Throws EnvironmentError because the steps passed without the failure.
  [[noreturn]] void refuse_passed() const;
};

// Starts from the newest checkpoint before the step that numerics.json reports, else from the
// beginning. Errors: UsageError for a directory without a run or a run without a failure;
// CheckpointError for a run.json or numerics.json that this program did not write.
ReplayPlan read_replay_plan(const std::filesystem::path& run_directory);

}  // namespace lockstep::trainers
