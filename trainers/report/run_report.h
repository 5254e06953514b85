// Prints a run's start lines and end block, fills run.json's figures, and lists --lr-dry-run's
// rates.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/results/training_result.h"
#include "engine/settings/batch_division.h"
#include "engine/settings/exchange_config.h"
#include "nn/module.h"
#include "trainers/config/rank_machine.h"
#include "trainers/config/run_request.h"
#include "trainers/report/console.h"
#include "trainers/report/process.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers {

// Returns lines on program, network, data, and the numbers of ranks that give the run's bits.
std::vector<std::string> start_lines(const ResolvedRun& run,
                                     const data::DatasetPair& data,
                                     const nn::Module& model);

// --lr-dry-run: the learning rate of each step of the run where there are few, else of each epoch's
// first and last step. Epochs count from 0, steps from 1, as in log lines.
std::vector<std::string> lr_lines(const RunRequest& request,
                                  const BatchDivision& batch,
                                  int64_t dataset_images);

// --explain-precision: the type of each class of tensors and of each kind of operation.
std::vector<std::string> explain(const PrecisionConfig& config);

// Fills in the record's versions and machines.
void describe_run(const ResolvedRun& run, std::span<const RankPlace> places, RunRecord& record);
// Fills in the record's end, which is now, and where time and memory went. `peaks`: by rank.
void describe_end(const TrainingResult& result,
                  std::span<const MemoryPeaks> peaks,
                  RunRecord& record);

// Returns nothing where a signal ended the run. Under --no-eval there are no accuracies.
std::optional<FinalMetrics> final_metrics(const RunRequest& request,
                                          const TrainingResult& result,
                                          double wall_s);

// Prints accuracy, speed, and where the artifacts are.
void report_end(Console& console,
                const ResolvedRun& run,
                const TrainingResult& result,
                const std::filesystem::path& directory,
                double wall_s);

// The rank counts among 1, 2, 4, 8 and batch.ranks on which this batch, these shards and groups
// give the same bits: each rank's shards are then a subtree. None where the algorithm sums in
// another order than the tree's.
std::vector<int64_t> same_bits_ranks(const BatchDivision& batch, const ExchangeConfig& exchange);
// "same bits on 1,2,4,8 ranks (512 images per step, 8 shards, 8 BN groups)", and what to pass where
// fewer are reached; why not, where this run gives other bits than others.
std::string same_bits_text(const BatchDivision& batch, const ExchangeConfig& exchange);

}  // namespace lockstep::trainers
