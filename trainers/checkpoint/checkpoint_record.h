// A checkpoint's record beside its tensors: the settings that fix its run, and how far the run was.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/update/training_position.h"
#include "trainers/report/evaluation_record.h"

namespace lockstep::trainers {

// The advice where a checkpoint is refused.
inline constexpr const char* kAsWritten = "another checkpoint of that run, as the run wrote it";

struct RunIdentity {
  std::string program;  // "train_convnet"
  // A resumed run must have these same values.
  std::string arch;
  int64_t global_batch = 0;  // B
  int64_t micro_steps = 1;   // A
  int64_t shards = 1;        // S
  int64_t bn_groups = 1;     // G
  Seeds seeds;
  int64_t start_epoch = 0;
  std::string data_digest;
  // A resumed run may have other values, and then has other bits.
  Texts environment;  // isa, lockstep, onednn (versions), onednn_isa; wire, predivide, algorithm
                      // (of gradients); where the run has them: cublaslt, cudnn (versions),
                      // plan_choices (digest of its engines)
  Texts settings;     // flags that shape the training: "lr" and so on
  EvaluationRecord evaluation = {};  // unknown in files from before it was recorded

  bool operator==(const RunIdentity& other) const = default;
};

struct CheckpointRecord {
  RunIdentity run;
  TrainingPosition position;
  std::string model_digest;  // state_digest()
};

// A key of RunIdentity::settings. Programs that did not record it counted the cuts of step and
// multistep from epoch 0, warm-up or not.
inline constexpr const char* kEpochs = "epochs";

// The record as metadata of a safetensors file.
Texts to_metadata(const CheckpointRecord& record);
// Errors: CheckpointError, naming `file`, for another major version.
void check_version(const Texts& metadata, const std::string& file);
// Other keys are ignored. Errors: CheckpointError for text that to_metadata() does not write, and
// for numbers that no run has. Requires: check_version().
CheckpointRecord record_of(const Texts& metadata, const std::string& file);
// Returns the evaluation's part of the record; one that is not known where the file has none.
// Errors: as record_of().
EvaluationRecord recorded_evaluation(const Texts& metadata, const std::string& file);

// "isa is x86-64-v3, was x86-64-v4" for each difference between the runs' environments and
// settings, except their epochs.
std::vector<std::string> differences(const RunIdentity& now, const RunIdentity& before);

// Errors: CheckpointError for a number of steps that does not lie in the current epoch.
void check_place(const TrainingPosition& position, int64_t steps_per_epoch);

}  // namespace lockstep::trainers
