// Do two checkpoints hold the same bits, and if not, where do they differ?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/safetensors.h"

namespace lockstep::trainers {

struct CheckpointDiff {
  int64_t tensors = 0;                 // names in either
  std::vector<std::string> differing;  // a line for each tensor that differs, in name order
  std::vector<std::string>
      metadata;  // a line for each metadata key that differs; these do not count

  bool same() const { return differing.empty(); }
};

// Compares names, dtypes, shapes and bytes: NaNs of equal bits are the same, 0 and -0 are not.
CheckpointDiff diff_checkpoints(const Safetensors& a, const Safetensors& b);

// The report of `lockstep diff`: at most `limit` lines for tensors, as many for metadata.
std::string format_diff(const CheckpointDiff& diff, size_t limit);

}  // namespace lockstep::trainers
