// The reports of `lockstep inspect` and `lockstep diff`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/safetensors.h"

namespace lockstep::trainers {

// Statistics of the finite elements. `mean` is summed in double. All are 0 when no element is
// finite.
struct TensorStatistics {
  double min = 0;
  double max = 0;
  double mean = 0;
  int64_t nonfinite = 0;
};

TensorStatistics statistics(const Tensor& tensor);

// The report of `lockstep inspect`: a row for each tensor (dtype, shape, range, mean, digest), the
// metadata, and the digest of all, as run.json has it. `content` is as read_safetensors() gave it.
std::string inspect_checkpoint(const Safetensors& content);

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
