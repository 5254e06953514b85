// What fixes a run, settled: the same on every rank, and what run.json says of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/gradient_reducer.h"
#include "comm/handshake.h"
#include "trainers/config/resolved_run.h"

namespace lockstep::trainers {

struct BucketSize {
  int64_t tensors = 0;
  int64_t bytes = 0;
};

struct RunPlan {
  int64_t global_batch = 0;  // B
  int64_t micro_steps = 1;   // A
  int64_t shards = 1;        // S
  int64_t bn_groups = 1;     // G
  uint64_t seed = 0;
  std::string algorithm;
  std::string transport;  // "none" for a lone rank
  std::string wire;       // dtype of gradients on their way
  double predivide = 1;
  bool overlap = true;
  std::vector<BucketSize> buckets;
  std::string plan_choices = {};  // as ResolvedRun's
  std::vector<int64_t> reach;  // rank counts with the same bits (trainers/config/batch_division.h)
};

RunPlan make_run_plan(const ResolvedRun& run, std::span<const comm::Bucket> buckets);

// For a handshake.
std::vector<comm::HandshakeField> handshake_fields(const RunPlan& plan);

}  // namespace lockstep::trainers
