// Lists the convolutions of a run, and lets rank 0 choose an engine for each, for all ranks.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "core/stream.h"
#include "data/dataset.h"
#include "engine/settings/batch_division.h"
#include "kernels/conv/convolution_problem.h"
#include "trainers/config/run_request.h"
#include "trainers/model/models.h"
#include "trainers/planner/plan_file.h"

namespace lockstep::trainers {

// Lists the convolutions of a step in order, for each image size of the epochs and each number of
// images that a shard has on any rank. Each is followed by the fused forms of its layers, where
// batch-norm groups are shards and no casts lie between. Then come those of a chunk of the
// evaluation, if there is one. The smaller last step of an epoch and the smaller last chunk are
// left out, because they come only once in an epoch.
std::vector<kernels::ConvolutionProblem> run_convolutions(const RunRequest& request,
                                                          const BatchDivision& batch,
                                                          const ModelOptions& network,
                                                          const data::Dataset& test);

struct SettledEngines {
  PlannedEngines engines = {};  // of the run; a convolution that is not among them goes by the rule
  int64_t convolutions = 0;
  // Rank 0's.
  PlanFile plans = {};    // the usable part of the file, and what was timed
  int64_t timed = 0;      // of `engines`, now
  std::string note = {};  // what to tell the user; may be empty

  int64_t fused = 0;            // of `convolutions`: forward passes that are one with batch norms
  int64_t workspace_bytes = 0;  // largest_workspace()

  // "cuDNN's engines: 60 of 68 convolutions by plans.json, 8 of them timed now, 8 by rule, 20 fused
  // with batch norms"
  std::string line(const std::filesystem::path& file) const;
};

// Returns the fused forms among `problems` that a run uses: those that are faster for shards of
// each size.
std::vector<kernels::ConvolutionProblem> fused_layers(
    std::span<const kernels::ConvolutionProblem> problems, const PlannedEngines& engines);

// Finds the fastest engine; empty: none is looked for. `known` holds the engines of the problems
// before this one.
using TuneEngine = std::function<PlannedEngine(const kernels::ConvolutionProblem& problem,
                                               const PlannedEngines& known)>;
// Makes a tuner that times engines on `stream`, which must outlive the result. Empty in a build
// without cuDNN.
TuneEngine make_tuner(Stream& stream);

// A collective call. Rank 0 reads `file` and, with `tune`, times the engines that it lacks; a
// missing or stale file then lacks all. Each convolution is a call of all ranks, so that no rank
// waits long. Writes nothing. An error ends all ranks here: EnvironmentError for an unusable file.
SettledEngines settle_engines(Communicator& ranks,
                              const std::filesystem::path& file,
                              const PlanOrigin& current,
                              std::span<const kernels::ConvolutionProblem> problems,
                              const TuneEngine& tune);

}  // namespace lockstep::trainers
