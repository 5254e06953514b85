#include "engine/step/step_inputs.h"

#include "core/shards.h"

namespace lockstep {

bool fits_one_graph(const TrainingSettings& settings, const BatchDivision& batch, bool over_nccl) {
  const bool gathers = any_group_spans_ranks(batch.shards, batch.bn_groups, batch.ranks) &&
                       settings.exchange.algorithm == Algorithm::kNone;
  const bool without_host = batch.ranks == 1 || (over_nccl && !gathers);
  return settings.device == Device::kCuda && without_host && batch.micro_steps == 1;
}

}  // namespace lockstep
