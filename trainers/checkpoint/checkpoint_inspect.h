// Prints the content of a checkpoint as a table.
#pragma once

#include <cstdint>
#include <string>

#include "core/safetensors.h"

namespace lockstep::trainers {

// Statistics of the elements that are finite; `mean` summed in double, all 0 when there is none.
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

}  // namespace lockstep::trainers
