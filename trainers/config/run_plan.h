// Holds what fixes a run: the same on every rank, recorded in run.json.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/gradient_reducer.h"
#include "comm/handshake.h"
#include "trainers/config/run_config.h"

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
  std::string plan_choices = {};  // as RunConfig's
  std::vector<int64_t> reach;     // rank counts with the same bits (trainers/config/resolve_run.h)
};

// Requires: a resolved config.
RunPlan make_run_plan(const RunConfig& config, std::span<const comm::Bucket> buckets);

// For a handshake.
std::vector<comm::HandshakeField> handshake_fields(const RunPlan& plan);

}  // namespace lockstep::trainers
