#include "trainers/config/resolved_run.h"

#include <ctime>

#include <fmt/chrono.h>

#include "core/shards.h"

namespace lockstep::trainers {

bool ResolvedRun::runs_as_graph() const {
  const bool gathers = any_group_spans_ranks(batch.shards, batch.bn_groups, batch.ranks) &&
                       request.exchange.algorithm == Algorithm::kNone;
  const bool without_host = batch.ranks == 1 || (over_nccl() && !gathers);
  return request.device == Device::kCuda && request.graph && without_host && batch.micro_steps == 1;
}

std::string default_output_dir(const std::string& arch,
                               int64_t ranks,
                               std::chrono::system_clock::time_point start) {
  const std::time_t utc = std::chrono::system_clock::to_time_t(start);
  return fmt::format("runs/{:%Y%m%d-%H%M%S}-{}-n{}", fmt::gmtime(utc), arch, ranks);
}

}  // namespace lockstep::trainers
